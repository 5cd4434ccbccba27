import { Buffer } from 'node:buffer';

/** Resolves to the text of a request's or an answer's body, or null when it has more than `maxBytes`; reads no more than that. */
export async function readBody({ body }: Request | Response, maxBytes: number): Promise<string | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > maxBytes) return null;
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}
