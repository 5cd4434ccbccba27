import { createBucket, deleteBucket, findBucket, listBuckets, updateBucket } from './bucket-rows.ts';
import type { AsCaller, StorageApp } from './route-parts.ts';

/** Adds the routes below /bucket. */
export function bucketRoutes(app: StorageApp, asCaller: AsCaller): void {
  app.get('/bucket', async (c) => c.json(await asCaller(c, listBuckets)));
  app.get('/bucket/:bucket', async (c) =>
    c.json(await asCaller(c, (session) => findBucket(session, c.req.param('bucket')))),
  );
  app.post('/bucket', async (c) => {
    const { id, name, ...settings } = await c.req.json();
    await asCaller(c, (session) => createBucket(session, id ?? name, settings));
    return c.json({ name });
  });
  app.put('/bucket/:bucket', async (c) => {
    const settings = await c.req.json();
    await asCaller(c, (session) => updateBucket(session, c.req.param('bucket'), settings));
    return c.json({ message: 'Successfully updated' });
  });
  app.delete('/bucket/:bucket', async (c) => {
    await asCaller(c, (session) => deleteBucket(session, c.req.param('bucket')));
    return c.json({ message: 'Successfully deleted' });
  });
}
