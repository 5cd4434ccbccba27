// One Postgres server for a whole Vitest run, with the project's migrations applied. See database.ts.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { createDataDirectory, setUpDatabase } from '../../local/platform/database/template.ts';
import { migrationFiles } from '../../local/platform/migrate.ts';
import { type Postgres, startPostgres } from '../../local/platform/postgres.ts';
import { scratchFolder } from '../../local/platform/scratch-folder.ts';
import { startWatchdog } from '../../local/platform/watchdog.ts';
import { portSetting } from '../../packages/test/test-server.ts';
import { writeBuilt } from '../../tools/engine/write-built.ts';
import { buildPages } from '../../tools/pages/build-pages.ts';

declare module 'vitest' {
  interface ProvidedContext {
    postgresPort: number;
    /** Why there is no server; empty when there is one. */
    postgresError: string;
    /** A folder for what the files of tests share, which goes at the end. */
    runFolder: string;
    /** Another, on the disk where tests make their projects. */
    installFolder: string;
  }
}

const root = path.join(import.meta.dirname, '..', '..');
const migrations = { folder: path.join(root, 'supabase', 'migrations') };

/**
 * Makes the database `contrib_regression`, a project's before its first migration: beside the one that it works in, the real pg_cron
 * lets itself be created in one of this name alone. Of that it makes `engine`, with the engine alone. The pipelines of an example would cost every test of the engine: the
 * sweep, the invariants and each definition look at all pipelines.
 */
async function createTemplates(server: Postgres): Promise<void> {
  const run = async (url: string, statement: string) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(statement).finally(() => client.end());
  };
  const create = (what: string) =>
    run(server.url('supabase_admin', 'template1'), `create database ${what} owner postgres`);
  await create('contrib_regression template template0');
  await setUpDatabase(server.url('supabase_admin', 'contrib_regression'));
  await create('engine template contrib_regression strategy file_copy');
  for (const file of migrationFiles(migrations).filter((name) => name.endsWith('_millrace.sql'))) {
    await run(server.url('postgres', 'engine'), fs.readFileSync(file, 'utf8'));
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = fs.mkdtempSync(path.join(scratchFolder(), 'millrace-test-'));
  fs.chmodSync(folder, 0o711);
  const watchdog = startWatchdog();
  watchdog.removeLater(folder);
  project.provide('runFolder', folder);
  const installFolder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-installed-'));
  watchdog.removeLater(installFolder);
  project.provide('installFolder', installFolder);
  let stop = async () => {};
  try {
    const dataDir = path.join(folder, 'postgres');
    // For whoever starts Vitest by itself.
    await writeBuilt(root);
    await buildPages(root);
    await createDataDirectory(dataDir, folder, migrations);
    // Real extensions work where no test is, and keep no database from being copied. Statistics that come by themselves would have
    // a database dropped that could serve more tests, and plans differ from run to run.
    const server = await startPostgres({
      dataDir,
      fsync: false,
      maxConnections: 300,
      workersIn: 'template1',
      autovacuum: false,
      watchdog,
    });
    stop = server.stop;
    await createTemplates(server);
    project.provide('postgresPort', server.port);
    process.env[portSetting] = String(server.port);
    project.provide('postgresError', '');
  } catch (error) {
    // Told to the tests that ask for a database, so that the others still run.
    project.provide('postgresPort', 0);
    project.provide('postgresError', String(error));
  }
  return async () => {
    await stop();
    for (const made of [folder, installFolder]) fs.rmSync(made, { recursive: true, force: true });
    watchdog.dismiss();
  };
}
