import { type Bucket, findBucket } from './bucket-rows.ts';
import type { Database, Session } from './caller.ts';
import type { Contents } from './contents.ts';
import { folderOf, type ListRequest, listFolder } from './list-folder.ts';
import { checkObjectName } from './names.ts';
import {
  deleteObjects,
  findObject,
  moveObject,
  objectsBelow,
  type Place,
  type StoredObject,
  writeObject,
} from './object-rows.ts';
import { readUpload } from './read-upload.ts';
import type { AsCaller, StorageApp } from './server.ts';
import type { UrlSigner } from './signed-urls.ts';
import { invalidRequest, noSuchBucket, noSuchObject } from './storage-error.ts';

/** What hosted Supabase sets for a new project, in bytes. */
const largestObject = 50 * 2 ** 20;

interface Parts {
  asCaller: AsCaller;
  database: Database;
  contents: Contents;
  signer: UrlSigner;
}

interface Transfer {
  bucketId: string;
  sourceKey: string;
  destinationKey: string;
  destinationBucket?: string;
}

/** Adds the routes below /object; more special ones stand first. */
export function objectRoutes(app: StorageApp, { asCaller, database, contents, signer }: Parts): void {
  const asAdmin = <T>(work: (session: Session) => Promise<T>) => database.transaction(undefined, work);
  const knownBucket = (id: string): Promise<Bucket> => asAdmin((session) => findBucket(session, id));

  app.get('/object/public/:bucket/:name{.+}', async (c) => {
    const place = c.req.param();
    if (!(await knownBucket(place.bucket)).public) throw noSuchBucket();
    return download(() => asAdmin((session) => findObject(session, place)), c.req.query('download'));
  });

  app.get('/object/sign/:bucket/:name{.+}', async (c) => {
    const place = c.req.param();
    await signer.verify(place.bucket, place.name, c.req.query('token') ?? '');
    return download(() => asAdmin((session) => findObject(session, place)), c.req.query('download'));
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

  app.post('/object/list/:bucket', async (c) => {
    const request = await c.req.json<ListRequest>();
    const below = await asCaller(c, (session) => objectsBelow(session, c.req.param('bucket'), folderOf(request)));
    return c.json(listFolder(below, request));
  });

  app.get('/object/info/:bucket/:name{.+}', async (c) => {
    const place = c.req.param();
    await knownBucket(place.bucket);
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
    const bucket = await knownBucket(place.bucket);
    const sizeLimit = Math.min(largestObject, bucket.file_size_limit ?? largestObject);
    const upload = await readUpload(c.req.raw, { sizeLimit, mimeTypes: bucket.allowed_mime_types });
    const replace = c.req.method === 'PUT' || c.req.header('x-upsert') === 'true';
    const options = { replace, owner: c.env.claims?.sub };
    const { id, replaced } = await asCaller(c, (session) => writeObject(session, contents, place, upload, options));
    if (replaced) await contents.remove(replaced);
    return c.json({ Id: id, Key: `${place.bucket}/${place.name}` });
  });

  app.get('/object/authenticated/:bucket/:name{.+}', (c) => {
    const place = c.req.param();
    return download(() => asCaller(c, (session) => findObject(session, place)), c.req.query('download'));
  });
  app.get('/object/:bucket/:name{.+}', (c) => {
    const place = c.req.param();
    return download(() => asCaller(c, (session) => findObject(session, place)), c.req.query('download'));
  });

  async function download(find: () => Promise<StoredObject>, saveAs: string | undefined): Promise<Response> {
    let object = await find();
    let content = await contents.read(object.version);
    if (!content) {
      // Replaced between row and file: what replaced it is there by now.
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
}

function readSeconds({ expiresIn }: { expiresIn?: unknown }): number {
  if (typeof expiresIn === 'number' && Number.isInteger(expiresIn) && expiresIn > 0) return expiresIn;
  throw invalidRequest('body/expiresIn must be a whole number of seconds above 0');
}

function readTransfer({ bucketId, sourceKey, destinationKey, destinationBucket }: Transfer) {
  checkObjectName(destinationKey);
  return {
    from: { bucket: bucketId, name: sourceKey },
    to: { bucket: destinationBucket ?? bucketId, name: destinationKey },
  };
}
