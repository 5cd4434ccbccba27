/** The bytes that a text of base64 stands for. */
export function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** The bytes of a bytea as the Data API writes it: \x and two hexadecimal digits each. */
export function fromBytea(text: string): Uint8Array {
  const bytes = new Uint8Array((text.length - 2) / 2);
  for (let at = 0; at < bytes.length; at++) bytes[at] = Number.parseInt(text.slice(2 + at * 2, 4 + at * 2), 16);
  return bytes;
}
