import { findBucket } from './bucket-rows.ts';
import { checkObjectName } from './names.ts';
import { deleteObjects, findObject, moveObject, type Place, writeObject } from './object-rows.ts';
import { readUpload } from './read-upload.ts';
import type { ObjectParts, StorageApp } from './route-parts.ts';
import { noSuchObject } from './storage-error.ts';

/** The largest object in bytes, as hosted Supabase sets it for a new project. */
const largestObject = 50 * 2 ** 20;

interface Transfer {
  bucketId: string;
  sourceKey: string;
  destinationKey: string;
  destinationBucket?: string;
}

/** Adds the routes that move, copy, delete and upload objects. */
export function writeRoutes(app: StorageApp, { asCaller, asAdmin, contents }: ObjectParts): void {
  app.post('/object/move', async (c) => {
    const { from, to } = readTransfer(await c.req.json());
    const { id, name } = await asCaller(c, (session) => moveObject(session, from, to));
    return c.json({ message: 'Successfully moved', Id: id, Key: name });
  });

  app.post('/object/copy', async (c) => {
    const { from, to } = readTransfer(await c.req.json());
    const source = await asCaller(c, (session) => findObject(session, from));
    const content = await contents.read(source.version);
    if (!content) throw noSuchObject();
    const { mimetype, cacheControl } = source.metadata;
    const upload = { content, mimeType: mimetype, cacheControl, userMetadata: source.user_metadata ?? {} };
    const replace = c.req.header('x-upsert') === 'true';
    const options = { replace, owner: c.env.claims?.sub };
    const { id, replaced } = await asCaller(c, (session) => writeObject(session, contents, to, upload, options));
    if (replaced) await contents.remove(replaced);
    return c.json({ Id: id, Key: `${to.bucket}/${to.name}` });
  });

  app.delete('/object/:bucket', async (c) => {
    const { prefixes } = await c.req.json<{ prefixes: string[] }>();
    const removed = await asCaller(c, (session) => deleteObjects(session, c.req.param('bucket'), prefixes));
    for (const { version } of removed) await contents.remove(version);
    return c.json(removed);
  });

  app.on(['POST', 'PUT'], '/object/:bucket/:name{.+}', async (c) => {
    const place = c.req.param() as unknown as Place;
    checkObjectName(place.name);
    const bucket = await asAdmin((session) => findBucket(session, place.bucket));
    const sizeLimit = Math.min(largestObject, bucket.file_size_limit ?? largestObject);
    const upload = await readUpload(c.req.raw, { sizeLimit, mimeTypes: bucket.allowed_mime_types });
    const replace = c.req.method === 'PUT' || c.req.header('x-upsert') === 'true';
    const options = { replace, owner: c.env.claims?.sub };
    const { id, replaced } = await asCaller(c, (session) => writeObject(session, contents, place, upload, options));
    if (replaced) await contents.remove(replaced);
    return c.json({ Id: id, Key: `${place.bucket}/${place.name}` });
  });
}

function readTransfer({ bucketId, sourceKey, destinationKey, destinationBucket }: Transfer) {
  checkObjectName(destinationKey);
  return {
    from: { bucket: bucketId, name: sourceKey },
    to: { bucket: destinationBucket ?? bucketId, name: destinationKey },
  };
}
