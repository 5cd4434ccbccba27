// Data directories with roles, stand-ins and migrations applied, kept under .cache/ and copied at the next start.
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { supabaseVersion } from '../binaries.ts';
import { extensionFiles, hasSafeUpdate, realWorkers } from '../extensions.ts';
import { applyMigrations, type Migrations, migrationFiles, precedingTexts } from '../migrate.ts';
import { cacheFolder, isBundled, ownFolder } from '../places.ts';
import { initializeCluster, type Postgres, startPostgres } from '../postgres.ts';
import { postgresFiles } from '../postgres-files.ts';
import { postgresUser } from '../postgres-user.ts';

const run = promisify(execFile);
const clustersFolder = path.join(cacheFolder, 'clusters');
const keptTemplates = 6;

const authFile = path.join(ownFolder, 'auth', 'auth.sql');
const realtimeFile = path.join(ownFolder, 'realtime', 'realtime.sql');
const storageFile = path.join(ownFolder, 'storage', 'storage.sql');
const inThisFolder = (name: string) => path.join(ownFolder, 'database', name);
const rolesFile = inThisFolder('roles.sql');
const schemasFile = inThisFolder('schemas.sql');
const webhooksFile = inThisFolder('webhooks.sql');
const newObjectsFile = inThisFolder('new-objects.sql');
// These files decide what a cluster is like as well.
const makers = isBundled
  ? [import.meta.filename]
  : [import.meta.filename, path.join(ownFolder, 'postgres.ts'), inThisFolder('hosted-rights.ts')];

/**
 * Puts a new cluster at `dataDir`, which must not exist yet: Supabase's roles and schemas, the stand-ins and, unless
 * `migrations` is false, the migrations. `workDir` is a folder for scratch data on the way. With `exposeNewObjects` the
 * API roles have rights on what postgres makes in public, as in projects of before 30 October 2026.
 */
export async function createDataDirectory(
  dataDir: string,
  workDir: string,
  migrations: Migrations | false,
  exposeNewObjects = false,
): Promise<void> {
  const base = { key: baseKey(exposeNewObjects), build: (folder: string) => buildBase(folder, exposeNewObjects) };
  if (!migrations) return copyTemplate(base, dataDir, workDir);
  const key = digest([
    base.key,
    supabaseVersion(),
    ...contents(migrationFiles(migrations)),
    ...precedingTexts(migrations),
  ]);
  await copyTemplate({ key, build: (folder) => buildMigrated(folder, workDir, migrations) }, dataDir, workDir);

  async function buildMigrated(folder: string, work: string, applied: Migrations) {
    await copyTemplate(base, folder, work);
    await withServer(folder, async (server) => {
      await applyMigrations(server.url('postgres'), applied, { isNew: true });
      await compactCatalogs(server.url('supabase_admin'));
    });
  }
}

interface Template {
  key: string;
  build(folder: string): Promise<void>;
}

async function copyTemplate(template: Template, dataDir: string, workDir: string): Promise<void> {
  const cached = path.join(clustersFolder, template.key);
  if (!fs.existsSync(cached)) {
    // Built aside and renamed, so that two who start at once each find none or a whole one.
    const draft = path.join(workDir, `draft-${randomUUID()}`);
    await template.build(draft);
    fs.mkdirSync(clustersFolder, { recursive: true });
    const copy = `${cached}.${randomUUID()}`;
    await run('cp', ['-a', draft, copy]);
    try {
      fs.renameSync(copy, cached);
    } catch {
      fs.rmSync(copy, { recursive: true });
    }
    fs.renameSync(draft, dataDir);
    removeOldTemplates();
    return;
  }
  fs.utimesSync(cached, new Date(), new Date());
  await run('cp', ['-a', cached, dataDir]);
}

function removeOldTemplates(): void {
  const hour = 3_600_000;
  const folders = fs
    .readdirSync(clustersFolder)
    .map((name) => ({
      folder: path.join(clustersFolder, name),
      used: fs.statSync(path.join(clustersFolder, name)).mtimeMs,
    }))
    .sort((a, b) => b.used - a.used);
  for (const { folder, used } of folders.slice(keptTemplates)) {
    if (Date.now() - used > hour) fs.rmSync(folder, { recursive: true, force: true });
  }
}

async function buildBase(folder: string, exposeNewObjects: boolean): Promise<void> {
  await initializeCluster(folder);
  await withServer(folder, async (server) => {
    const client = new pg.Client({ connectionString: server.url('supabase_admin') });
    await client.connect();
    try {
      await client.query(fs.readFileSync(rolesFile, 'utf8'));
      await client.query('alter database postgres owner to postgres');
      if (hasSafeUpdate(postgresFiles())) {
        await client.query(`alter role authenticator set session_preload_libraries = 'safeupdate'`);
      }
    } finally {
      await client.end();
    }
    await setUpDatabase(server.url('supabase_admin'), exposeNewObjects);
  });
}

/** Gives an empty database, of a cluster that has the roles, what a project's has before its first migration. */
export async function setUpDatabase(url: string, exposeNewObjects = false): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(fs.readFileSync(schemasFile, 'utf8'));
    await client.query(fs.readFileSync(authFile, 'utf8'));
    if (!exposeNewObjects) await client.query(fs.readFileSync(newObjectsFile, 'utf8'));
    const real = realWorkers(postgresFiles());
    for (const [name, schema] of [
      ['pg_net', 'extensions'],
      ['pg_cron', 'pg_catalog'],
    ] as const) {
      // The real ones work with the rights of their owner. A stand-in may be dropped by postgres, as hosted's may.
      if (!real.includes(name)) await client.query('set role postgres');
      await client.query(`create extension ${name} with schema ${schema}`);
      await client.query('reset role');
    }
    await client.query('create extension supabase_vault');
    for (const file of [webhooksFile, realtimeFile, storageFile]) await client.query(fs.readFileSync(file, 'utf8'));
  } finally {
    await client.end();
  }
}

/** Removes what migrations leave in the catalogs, a third of the size of a database that is copied hundreds of times. */
async function compactCatalogs(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      `select c.oid::regclass as name from pg_class c
       where c.relnamespace = 'pg_catalog'::regnamespace and c.relkind = 'r' and not c.relisshared`,
    );
    await client.query(`vacuum full ${rows.map(({ name }) => name).join(', ')}`);
  } finally {
    await client.end();
  }
}

async function withServer(dataDir: string, work: (server: Postgres) => Promise<void>): Promise<void> {
  const server = await startPostgres({ dataDir, fsync: false });
  try {
    await work(server);
  } finally {
    await server.stop();
  }
}

function baseKey(exposeNewObjects: boolean): string {
  const setup = [
    rolesFile,
    schemasFile,
    authFile,
    webhooksFile,
    realtimeFile,
    ...(exposeNewObjects ? [] : [newObjectsFile]),
  ];
  const files = [...setup, ...extensionFiles, storageFile, ...makers];
  const user = postgresUser()?.uid ?? process.getuid?.();
  const postgres = postgresFiles();
  const real = [...realWorkers(postgres), String(hasSafeUpdate(postgres))];
  return digest([postgres.version, ...real, String(user), ...contents(files)]);
}

function contents(files: string[]): string[] {
  return files.flatMap((file) => [path.basename(file), fs.readFileSync(file, 'utf8')]);
}

function digest(parts: string[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:${part}`);
  return hash.digest('hex').slice(0, 32);
}
