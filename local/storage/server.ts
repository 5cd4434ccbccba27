// The part of Supabase Storage's HTTP interface that supabase-js needs for buckets and objects. Rights are coarse:
// service_role does everything, everybody reads public buckets.
import { Hono } from 'hono';
import { ObjectStore, type StoredObject } from './objects.ts';

type Bindings = { role: string };

/** A handler of requests below /storage/v1 on behalf of `role`; objects are kept in `folder`. */
export function createStorage(folder: string): (request: Request, role: string) => Response | Promise<Response> {
  const store = new ObjectStore(folder);
  const app = new Hono<{ Bindings: Bindings }>().basePath('/storage/v1');

  app.get('/object/public/:bucket/:name{.+}', (c) => {
    const { bucket, name } = c.req.param();
    if (!store.bucket(bucket)?.public) return failure(404, 'Bucket not found');
    return download(bucket, name);
  });

  app.use('*', async (c, next) => {
    if (c.env.role !== 'service_role')
      return failure(403, 'new row violates row-level security policy', 'Unauthorized');
    return next();
  });

  app.get('/bucket', (c) => c.json(store.buckets()));
  app.get('/bucket/:bucket', (c) => {
    const bucket = store.bucket(c.req.param('bucket'));
    return bucket ? c.json(bucket) : failure(404, 'Bucket not found');
  });
  app.post('/bucket', async (c) => {
    const { id, name, ...settings } = await c.req.json();
    const created = store.createBucket(id ?? name, settings);
    return created ? c.json({ name: created.name }) : failure(409, 'The resource already exists', 'Duplicate');
  });
  app.delete('/bucket/:bucket', (c) => {
    const { bucket } = c.req.param();
    if (!store.bucket(bucket)) return failure(404, 'Bucket not found');
    if (store.objects(bucket).length > 0) return failure(409, 'The bucket you tried to delete is not empty');
    store.removeBucket(bucket);
    return c.json({ message: 'Successfully deleted' });
  });

  app.post('/object/list/:bucket', async (c) => {
    const { bucket } = c.req.param();
    if (!store.bucket(bucket)) return c.json([]);
    const { prefix = '', limit = 100, offset = 0, search = '' } = await c.req.json();
    return c.json(listFolder(store.objects(bucket), prefix, search).slice(offset, offset + limit));
  });
  app.get('/object/info/:bucket/:name{.+}', (c) => {
    const { bucket, name } = c.req.param();
    const object = store.bucket(bucket) && store.find(bucket, name);
    if (!object) return failure(404, 'Object not found');
    const { id, size, eTag, contentType, createdAt } = object;
    const shown = { id, name, bucket_id: bucket, size, etag: eTag, content_type: contentType, created_at: createdAt };
    return c.json(shown);
  });
  app.delete('/object/:bucket', async (c) => {
    const { bucket } = c.req.param();
    if (!store.bucket(bucket)) return failure(404, 'Bucket not found');
    const { prefixes } = await c.req.json<{ prefixes: string[] }>();
    const removed = prefixes.map((name) => store.remove(bucket, name)).filter((object) => object !== undefined);
    return c.json(removed.map((object) => ({ ...describe(object), name: object.name, bucket_id: bucket })));
  });
  app.on(['POST', 'PUT'], '/object/:bucket/:name{.+}', async (c) => {
    const { bucket, name } = c.req.param();
    const settings = store.bucket(bucket);
    if (!settings) return failure(404, 'Bucket not found');
    const replace = c.req.method === 'PUT' || c.req.header('x-upsert') === 'true';
    if (!replace && store.find(bucket, name)) return failure(409, 'The resource already exists', 'Duplicate');
    const { content, contentType } = await readUpload(c.req.raw);
    const limit = settings.file_size_limit;
    if (limit && content.length > limit) return failure(413, 'The object exceeded the maximum allowed size');
    const object = store.put(bucket, name, content, contentType);
    return c.json({ Id: object.id, Key: `${bucket}/${name}` });
  });
  app.get('/object/:bucket/:name{.+}', (c) => {
    const { bucket, name } = c.req.param();
    if (bucket === 'authenticated') {
      const [actual = '', ...rest] = name.split('/');
      return download(actual, rest.join('/'));
    }
    return download(bucket, name);
  });
  app.notFound(() => failure(404, 'Route not found'));

  function download(bucket: string, name: string): Response {
    const object = store.bucket(bucket) && store.find(bucket, name);
    if (!object) return failure(404, 'Object not found', 'not_found');
    const headers = { 'content-type': object.contentType, etag: object.eTag, 'content-length': String(object.size) };
    return new Response(new Uint8Array(store.read(bucket, name)), { headers });
  }

  return (request, role) => app.fetch(request, { role });
}

function failure(status: number, message: string, error = message): Response {
  return Response.json({ statusCode: String(status), error, message }, { status });
}

function describe(object: StoredObject) {
  const { id, contentType, size, eTag, createdAt, updatedAt } = object;
  return {
    id,
    created_at: createdAt,
    updated_at: updatedAt,
    last_accessed_at: updatedAt,
    metadata: { eTag, size, mimetype: contentType, lastModified: updatedAt, contentLength: size },
  };
}

/** The entries right below a prefix: objects, and one entry with a null id per folder. */
function listFolder(objects: StoredObject[], prefix: string, search: string) {
  const base = prefix && !prefix.endsWith('/') ? `${prefix}/` : prefix;
  const entries = new Map<string, object>();
  for (const object of objects) {
    if (!object.name.startsWith(base)) continue;
    const [first = '', ...deeper] = object.name.slice(base.length).split('/');
    if (!first.includes(search)) continue;
    const entry = deeper.length === 0 ? describe(object) : { id: null, metadata: null };
    entries.set(first, { name: first, ...entry });
  }
  return [...entries.values()];
}

async function readUpload(request: Request): Promise<{ content: Buffer; contentType: string }> {
  const contentType = request.headers.get('content-type') ?? 'application/octet-stream';
  if (!contentType.startsWith('multipart/form-data')) {
    return { content: Buffer.from(await request.arrayBuffer()), contentType };
  }
  const form = await request.formData();
  const file = [...form.values()].find((value) => typeof value !== 'string') as File;
  return { content: Buffer.from(await file.arrayBuffer()), contentType: file.type || 'application/octet-stream' };
}
