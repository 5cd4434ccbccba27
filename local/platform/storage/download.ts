import type { Contents } from './contents.ts';
import type { StoredObject } from './object-rows.ts';
import { noSuchObject } from './storage-error.ts';

/**
 * Answers with the content of the object that `find` finds. With `saveAs` a browser saves it, under that name unless it is
 * empty.
 */
export async function download(
  contents: Contents,
  saveAs: string | undefined,
  find: () => Promise<StoredObject>,
): Promise<Response> {
  let object = await find();
  let content = await contents.read(object.version);
  if (!content) {
    // Another request replaced or removed the object between the two reads: looks for its new content.
    object = await find();
    content = await contents.read(object.version);
  }
  if (!content) throw noSuchObject();
  const { mimetype, eTag, cacheControl } = object.metadata;
  const headers = new Headers({
    'content-type': mimetype,
    'content-length': String(content.length),
    'cache-control': cacheControl,
    etag: eTag,
    'last-modified': object.updated_at.toUTCString(),
  });
  if (saveAs !== undefined) {
    const name = encodeURIComponent(saveAs);
    headers.set('content-disposition', saveAs ? `attachment; filename*=UTF-8''${name}` : 'attachment;');
  }
  return new Response(new Uint8Array(content), { headers });
}
