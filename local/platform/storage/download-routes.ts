import { findBucket } from './bucket-rows.ts';
import { download } from './download.ts';
import { findObject } from './object-rows.ts';
import type { ObjectParts, StorageApp } from './route-parts.ts';
import { noSuchBucket } from './storage-error.ts';

/** Adds the routes that download an object: one of a public bucket for anybody, any other for callers who may see it. */
export function downloadRoutes(app: StorageApp, { asCaller, asAdmin, contents }: ObjectParts): void {
  app.get('/object/public/:bucket/:name{.+}', async (c) => {
    const place = c.req.param();
    if (!(await asAdmin((session) => findBucket(session, place.bucket))).public) throw noSuchBucket();
    return download(contents, c.req.query('download'), () => asAdmin((session) => findObject(session, place)));
  });

  for (const path of ['/object/authenticated/:bucket/:name{.+}', '/object/:bucket/:name{.+}'] as const) {
    app.get(path, (c) => {
      const place = c.req.param();
      return download(contents, c.req.query('download'), () => asCaller(c, (session) => findObject(session, place)));
    });
  }
}
