// A stand-in of the Management API's part for the supabase CLI's `functions`, `secrets`, `branches` and `projects api-keys`. It
// records what arrives and bundles nothing.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';

/** A function as the CLI has uploaded it. */
export interface Upload {
  /** The CLI's description of the function. Paths are relative to the folder that holds `supabase`. */
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
  /** The settings of functions. */
  secrets: Map<string, string>;
  /** The references of the branches by their names. */
  branches: Map<string, string>;
  stop(): Promise<void>;
}

/** The project's first preview branch. */
export const recordedBranch = { name: 'feature-x', ref: 'bbbbbbbbbbbbbbbbbbbb' };

/** Starts it on a free port, for one project with one preview branch, and one access token. */
export async function startManagementApi(project: string, token: string): Promise<ManagementApi> {
  const api = new Hono();
  api.use('*', async (context, next) => {
    if (context.req.header('authorization') === `Bearer ${token}`) return next();
    return context.json({ message: 'Unauthorized' }, 401);
  });
  const ofProject = api.basePath(`/v1/projects/:ref{${project}|${recordedBranch.ref}}`);
  ofProject.get('/', (context) =>
    context.json({ id: project, ref: project, name: 'recorded', status: 'ACTIVE_HEALTHY' }),
  );
  ofProject.get('/api-keys', (context) => {
    const name = context.req.param('ref') === project ? 'revealed' : recordedBranch.name;
    const secret = `sb_secret_${context.req.query('reveal') === 'true' ? name : '···'}`;
    return context.json([
      { name: 'anon', api_key: 'of anon', type: 'legacy' },
      { name: 'default', api_key: secret, type: 'secret' },
    ]);
  });
  const recorded = {
    ...recordFunctions(ofProject),
    secrets: recordSecrets(ofProject),
    branches: recordBranches(ofProject, api, project),
  };
  const server = http.createServer(getRequestListener(api.fetch));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...recorded,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

const times = { created_at: '2026-01-01T00:00:00Z', updated_at: '2026-01-01T00:00:00Z' };

function recordBranches(ofProject: Hono, api: Hono, project: string): ManagementApi['branches'] {
  const branches = new Map([[recordedBranch.name, recordedBranch.ref]]);
  const branch = (name: string) => {
    const kind = { is_default: false, persistent: false, with_data: false, status: 'FUNCTIONS_DEPLOYED' };
    const refs = { project_ref: branches.get(name), parent_project_ref: project };
    return { id: '11111111-1111-4111-8111-111111111111', name, git_branch: name, ...refs, ...kind, ...times };
  };
  ofProject.get('/branches', (context) => context.json([...branches.keys()].map(branch)));
  ofProject.get('/branches/:name', (context) => context.json(branch(context.req.param('name'))));
  ofProject.post('/branches', async (context) => {
    const { branch_name } = (await context.req.json()) as { branch_name: string };
    branches.set(branch_name, 'c'.repeat(20));
    return context.json(branch(branch_name), 201);
  });
  api.delete('/v1/branches/:ref', (context) => {
    for (const [name, ref] of branches) if (ref === context.req.param('ref')) branches.delete(name);
    return context.json({ message: 'ok' });
  });
  return branches;
}

function recordSecrets(ofProject: Hono): ManagementApi['secrets'] {
  const secrets = new Map<string, string>();
  ofProject.get('/secrets', (context) => {
    const named = [...secrets.keys(), 'SUPABASE_URL'];
    return context.json(named.map((name) => ({ name, value: 'a digest', updated_at: times.updated_at })));
  });
  ofProject.post('/secrets', async (context) => {
    const given = (await context.req.json()) as { name: string; value: string }[];
    for (const { name, value } of given) secrets.set(name, value);
    return context.json({}, 201);
  });
  ofProject.delete('/secrets', async (context) => {
    for (const name of (await context.req.json()) as string[]) secrets.delete(name);
    return context.json({});
  });
  return secrets;
}

function recordFunctions(ofProject: Hono): Pick<ManagementApi, 'uploads' | 'deployed'> {
  const uploads: ManagementApi['uploads'] = new Map();
  const deployed: ManagementApi['deployed'] = new Set();
  const describe = (slug: string) => {
    const metadata = uploads.get(slug)?.metadata;
    const at = { version: 1, created_at: 0, updated_at: 0 };
    return { id: slug, slug, name: slug, status: 'ACTIVE', ...at, verify_jwt: metadata?.verify_jwt ?? true };
  };
  ofProject.get('/functions', (context) => context.json([...deployed].map(describe)));
  ofProject.delete('/functions/:slug', (context) => {
    deployed.delete(context.req.param('slug'));
    return context.json({});
  });
  ofProject.post('/functions/deploy', async (context) => {
    const slug = context.req.query('slug') ?? '';
    const form = await context.req.raw.formData();
    const files = form.getAll('file').filter((part): part is File => part instanceof File);
    const texts = await Promise.all(files.map(async (file) => [file.name, await file.text()] as const));
    uploads.set(slug, { metadata: JSON.parse(String(form.get('metadata'))), files: new Map(texts) });
    if (context.req.query('bundleOnly') !== 'true') deployed.add(slug);
    return context.json(describe(slug), 201);
  });
  ofProject.put('/functions', async (context) => {
    const updates = (await context.req.json()) as { slug: string }[];
    for (const { slug } of updates) deployed.add(slug);
    return context.json({ functions: updates.map(({ slug }) => describe(slug)) });
  });
  return { uploads, deployed };
}
