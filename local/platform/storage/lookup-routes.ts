import { findBucket } from './bucket-rows.ts';
import { folderOf, type ListRequest, listFolder } from './list-folder.ts';
import { findObject, objectsBelow } from './object-rows.ts';
import type { ObjectParts, StorageApp } from './route-parts.ts';

/** Adds the routes that list a folder and describe an object. */
export function lookupRoutes(app: StorageApp, { asCaller, asAdmin }: ObjectParts): void {
  app.post('/object/list/:bucket', async (c) => {
    const request = await c.req.json<ListRequest>();
    const below = await asCaller(c, (session) => objectsBelow(session, c.req.param('bucket'), folderOf(request)));
    return c.json(listFolder(below, request));
  });

  app.get('/object/info/:bucket/:name{.+}', async (c) => {
    const place = c.req.param();
    // Says that there is no such bucket, rather than no such object.
    await asAdmin((session) => findBucket(session, place.bucket));
    const {
      metadata,
      user_metadata,
      last_accessed_at: _,
      updated_at,
      ...row
    } = await asCaller(c, (session) => findObject(session, place));
    const { size, mimetype, cacheControl, eTag } = metadata;
    const about = { size, content_type: mimetype, cache_control: cacheControl, etag: eTag, last_modified: updated_at };
    return c.json({ ...row, ...about, metadata: user_metadata });
  });
}
