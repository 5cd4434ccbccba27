/** The text of a file in UTF-8 or in what its byte order mark names; an older code is taken for Windows-1252. */
export function decodeText(bytes: Uint8Array): string {
  const utf16 = utf16Mark(bytes);
  if (utf16) return new TextDecoder(utf16).decode(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

/** Which UTF-16 the file's byte order mark says it is in, if it has one. */
export function utf16Mark([first, second]: Uint8Array): 'utf-16le' | 'utf-16be' | null {
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  return first === 0xfe && second === 0xff ? 'utf-16be' : null;
}
