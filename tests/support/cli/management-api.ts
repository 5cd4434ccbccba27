// A stand-in of the Management API's part for `supabase functions deploy --use-api`, `projects api-keys` and
// `branches list`. It records what arrives and bundles nothing.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';

/** One function as it was uploaded. */
export interface Upload {
  /** What the CLI says of the function. Paths are relative to the folder that holds `supabase`. */
  metadata: { name: string; entrypoint_path: string; import_map_path?: string; verify_jwt: boolean };
  /** The text of each file by its path, as in the metadata. */
  files: Map<string, string>;
}

export interface ManagementApi {
  url: string;
  /** By the function's name. */
  uploads: Map<string, Upload>;
  /** The names of the functions that are in force: uploaded alone, or by the update that ends an upload of several. */
  deployed: Set<string>;
  stop(): Promise<void>;
}

/** The project's one preview branch. */
export const recordedBranch = { name: 'feature-x', ref: 'bbbbbbbbbbbbbbbbbbbb' };

/** Starts it on a free port, for one project with one preview branch, and one access token. */
export async function startManagementApi(project: string, token: string): Promise<ManagementApi> {
  const uploads: ManagementApi['uploads'] = new Map();
  const deployed: ManagementApi['deployed'] = new Set();
  const functions = new Hono().basePath(`/v1/projects/:ref{${project}|${recordedBranch.ref}}`);
  functions.use('*', async (context, next) => {
    if (context.req.header('authorization') === `Bearer ${token}`) return next();
    return context.json({ message: 'Unauthorized' }, 401);
  });
  functions.get('/', (context) =>
    context.json({ id: project, ref: project, name: 'recorded', status: 'ACTIVE_HEALTHY' }),
  );
  functions.get('/branches', (context) => {
    const { name, ref } = recordedBranch;
    const times = { created_at: '2026-01-01T00:00:00Z', updated_at: '2026-01-01T00:00:00Z' };
    const kind = { is_default: false, persistent: false, with_data: false, status: 'FUNCTIONS_DEPLOYED' };
    const id = '11111111-1111-4111-8111-111111111111';
    return context.json([
      { id, name, git_branch: name, project_ref: ref, parent_project_ref: project, ...kind, ...times },
    ]);
  });
  functions.get('/api-keys', (context) => {
    const name = context.req.param('ref') === project ? 'revealed' : recordedBranch.name;
    const secret = `sb_secret_${context.req.query('reveal') === 'true' ? name : '···'}`;
    return context.json([
      { name: 'anon', api_key: 'of anon', type: 'legacy' },
      { name: 'default', api_key: secret, type: 'secret' },
    ]);
  });
  functions.get('/functions', (context) => context.json([...deployed].map(describe)));
  functions.post('/functions/deploy', async (context) => {
    const slug = context.req.query('slug') ?? '';
    const form = await context.req.raw.formData();
    const files = form.getAll('file').filter((part): part is File => part instanceof File);
    const texts = await Promise.all(files.map(async (file) => [file.name, await file.text()] as const));
    uploads.set(slug, { metadata: JSON.parse(String(form.get('metadata'))), files: new Map(texts) });
    if (context.req.query('bundleOnly') !== 'true') deployed.add(slug);
    return context.json(describe(slug), 201);
  });
  functions.put('/functions', async (context) => {
    const updates = (await context.req.json()) as { slug: string }[];
    for (const { slug } of updates) deployed.add(slug);
    return context.json({ functions: updates.map(({ slug }) => describe(slug)) });
  });
  const describe = (slug: string) => {
    const metadata = uploads.get(slug)?.metadata;
    const times = { version: 1, created_at: 0, updated_at: 0 };
    return { id: slug, slug, name: slug, status: 'ACTIVE', ...times, verify_jwt: metadata?.verify_jwt ?? true };
  };

  const server = http.createServer(getRequestListener(functions.fetch));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    uploads,
    deployed,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
