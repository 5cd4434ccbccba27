import { type Env, RetriableError } from '../_millrace/mod.ts';
import type { TextLocation } from '../_pipelines/documents-results.ts';
import { fetchFile, findFile, type StoragePlace, uploadFile } from '../_services/storage-files.ts';

export const TEXT_BUCKET = 'extracted_text';

/**
 * Writes a document's text into Storage, in the place of a former one, and says where it lies. The same text gets the
 * same answer. Throws a StageError when Storage does not take it.
 */
export async function storeText(documentId: string, text: string, env: Env): Promise<TextLocation> {
  const bytes = new TextEncoder().encode(text);
  const location = await locationOf(documentId, text, bytes);
  await uploadFile({ bucket: TEXT_BUCKET, path: nameOf(documentId) }, bytes, 'text/plain; charset=utf-8', env);
  return location;
}

/** Returns the location that storeText would return, and stores nothing. */
export function locateText(documentId: string, text: string): Promise<TextLocation> {
  return locationOf(documentId, text, new TextEncoder().encode(text));
}

/**
 * The text that lies there. Throws the PermanentError `text_missing`, or the RetriableError `text_changed` when it is
 * another than the one that was stored.
 */
export async function loadText(
  { text_location: location, text_sha256: hash }: TextLocation,
  env: Env,
): Promise<string> {
  const [bucket = '', ...path] = location.split('/');
  const place: StoragePlace = {
    bucket,
    path: path.join('/'),
    missing: { code: 'text_missing', remedy: 'queue extraction again' },
  };
  const bytes = await fetchFile(place, await findFile(place, env), env);
  if ((await sha256(bytes)) !== hash) {
    throw new RetriableError(
      'text_changed',
      `${location} is not the text that extraction stored: a late worker of an earlier run may have written over it. ` +
        'If this stays so, queue extraction again.',
    );
  }
  // With what might be taken for a byte order mark: offsets into the text count it.
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}

async function locationOf(documentId: string, text: string, bytes: Uint8Array<ArrayBuffer>): Promise<TextLocation> {
  return {
    text_location: `${TEXT_BUCKET}/${nameOf(documentId)}`,
    text_sha256: await sha256(bytes),
    characters: text.length,
  };
}

function nameOf(documentId: string): string {
  return `${documentId}.txt`;
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', bytes);
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
