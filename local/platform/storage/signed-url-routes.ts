import { download } from './download.ts';
import { findObject } from './object-rows.ts';
import type { ObjectParts, StorageApp } from './route-parts.ts';
import { invalidRequest } from './storage-error.ts';

/** Adds the routes that sign URLs of objects, and the one that such a URL leads to. */
export function signedUrlRoutes(app: StorageApp, { asCaller, asAdmin, contents, signer }: ObjectParts): void {
  app.get('/object/sign/:bucket/:name{.+}', async (c) => {
    const place = c.req.param();
    await signer.verify(place.bucket, place.name, c.req.query('token') ?? '');
    return download(contents, c.req.query('download'), () => asAdmin((session) => findObject(session, place)));
  });

  app.post('/object/sign/:bucket/:name{.+}', async (c) => {
    const place = c.req.param();
    const seconds = readSeconds(await c.req.json());
    await asCaller(c, (session) => findObject(session, place));
    return c.json({ signedURL: await signer.sign(place.bucket, place.name, seconds) });
  });

  app.post('/object/sign/:bucket', async (c) => {
    const bucket = c.req.param('bucket');
    const body = await c.req.json<{ expiresIn: number; paths: string[] }>();
    const seconds = readSeconds(body);
    const visible = await asCaller(c, (session) =>
      session.query<{ name: string }>('select name from storage.objects where bucket_id = $1 and name = any ($2)', [
        bucket,
        body.paths,
      ]),
    );
    const names = new Set(visible.map(({ name }) => name));
    const missing = 'Either the object does not exist or you do not have access to it';
    const answers = body.paths.map(async (path) =>
      names.has(path)
        ? { error: null, path, signedURL: await signer.sign(bucket, path, seconds) }
        : { error: missing, path, signedURL: null },
    );
    return c.json(await Promise.all(answers));
  });
}

function readSeconds({ expiresIn }: { expiresIn?: unknown }): number {
  if (typeof expiresIn === 'number' && Number.isInteger(expiresIn) && expiresIn > 0) return expiresIn;
  throw invalidRequest('body/expiresIn must be a whole number of seconds above 0');
}
