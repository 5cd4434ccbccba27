import fs from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { childProcesses } from '../../local/platform/child-processes.ts';
import { readUseNewPipeline, setProjectSecrets } from '../../local/platform/database/project-secrets.ts';
import { applyMigrations } from '../../local/platform/migrate.ts';
import { scratchFolder } from '../../local/platform/scratch-folder.ts';
import { type Stack, startStack } from '../../local/platform/stack.ts';
import { until } from '../support/until.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) fs.rmSync(folder, { recursive: true, force: true });
});

function temporaryFolder(): string {
  const folder = fs.mkdtempSync(path.join(scratchFolder(), 'millrace-test-'));
  fs.chmodSync(folder, 0o711);
  folders.push(folder);
  return folder;
}

async function query(url: string, text: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await client.query(text);
  } finally {
    await client.end();
  }
}

const functionsDir = path.join(import.meta.dirname, 'functions');

describe('startStack', () => {
  it('tells which migration failed and why, and leaves nothing running', async () => {
    const migrations = temporaryFolder();
    fs.writeFileSync(path.join(migrations, '20260101000000_bad.sql'), 'create table public.a (id nonsense);');
    const before = childProcesses(process.pid).length;
    await expect(startStack({ migrations, functionsDir })).rejects.toThrow(
      /^Migration 20260101000000_bad.sql failed.\nERROR: type "nonsense" does not exist [\s\S]*\ncreate table public.a \(id nonsense\)\n +\^$/,
    );
    await until(() => childProcesses(process.pid).length <= before);
  });

  it('says of a definition that the database refuses what to correct, and to write its migration anew', async () => {
    const migrations = temporaryFolder();
    const definition = `select '${'{}\n'.repeat(100)}'::jsonb;`;
    fs.writeFileSync(path.join(migrations, '20260101000000_good.sql'), 'create table public.a (id int);');
    fs.writeFileSync(path.join(migrations, '20260101000001_pipeline_bad.sql'), definition);
    const failure = await startStack({ migrations, functionsDir }).catch((error: Error) => error.message);
    expect(failure).toMatch(
      /^Migration 20260101000001_pipeline_bad.sql failed.\nERROR: invalid input syntax for type json/,
    );
    expect(failure).toMatch(
      /delete supabase\/migrations\/20260101000001_pipeline_bad\.sql, .* `npm run pipelines:sync`, which/,
    );
    expect(String(failure).split('\n').length).toBeLessThan(20);

    const noTable = `select 'public.tickets'::regclass;`;
    fs.writeFileSync(path.join(migrations, '20260101000001_pipeline_bad.sql'), noTable);
    await expect(startStack({ migrations, functionsDir })).rejects.toThrow(
      /^Migration [\s\S]*does not exist [\s\S]*\nAdd the migration of what is missing, or correct the definition; then delete /,
    );
  });

  it('refuses a migration that only a superuser could apply', async () => {
    const migrations = temporaryFolder();
    fs.writeFileSync(path.join(migrations, '20260101000000_super.sql'), `alter system set work_mem = '8MB';`);
    await expect(startStack({ migrations, functionsDir })).rejects.toThrow(/permission denied/);
  });

  it('copies USE_NEW_PIPELINE into the database, where it stays until another is given', async () => {
    const options = {
      migrations: false as const,
      functionsDir,
      dataDir: path.join(temporaryFolder(), 'data'),
    };
    const statement = `select decrypted_secret as value from vault.decrypted_secrets where name = 'millrace_use_new_pipeline'`;
    const kept = async ({ superDbUrl }: Stack) => (await query(superDbUrl, statement)).rows;
    const first = await startStack(options);
    expect(await kept(first)).toEqual([]);
    await first.stop();

    const second = await startStack({ ...options, env: { USE_NEW_PIPELINE: 'true' } });
    try {
      expect(await kept(second)).toEqual([{ value: 'true' }]);
      // The steps of each start.
      const give = (env: Record<string, string>) =>
        setProjectSecrets(second.superDbUrl, second.apiUrl, second.wakeSecret, readUseNewPipeline(env));
      await give({});
      expect(await kept(second)).toEqual([{ value: 'true' }]);
      await give({ USE_NEW_PIPELINE: 'false' });
      expect(await kept(second)).toEqual([{ value: 'false' }]);
    } finally {
      await second.stop();
    }
  });

  it('says at once when USE_NEW_PIPELINE is neither true nor false', async () => {
    await expect(startStack({ functionsDir, env: { USE_NEW_PIPELINE: 'yes' } })).rejects.toThrow(
      'USE_NEW_PIPELINE is "yes", but must be true or false: correct it, or leave it out.',
    );
  });

  it('finds data, keys and objects again in a data folder, and applies migrations that are new', async () => {
    const dataDir = path.join(temporaryFolder(), 'data');
    const migrations = temporaryFolder();
    fs.writeFileSync(path.join(migrations, '20260101000000_one.sql'), 'create table public.one (id int);');
    const options = { migrations, functionsDir, dataDir };
    const first = await startStack(options);
    await query(first.dbUrl, 'insert into public.one values (1)');
    await first.stop();

    fs.writeFileSync(path.join(migrations, '20260102000000_two.sql'), 'create table public.two (id int);');
    const second = await startStack(options);
    expect(second.secretKey).toBe(first.secretKey);
    const { rows } = await query(second.dbUrl, 'select (select count(*) from public.one), to_regclass($$public.two$$)');
    expect(rows).toEqual([{ count: '1', to_regclass: 'two' }]);
    await second.stop();

    // A migration that is edited afterwards is reported, since no database takes it twice.
    fs.appendFileSync(path.join(migrations, '20260101000000_one.sql'), 'alter table public.one add column n int;');
    const told: string[] = [];
    const third = await startStack({ ...options, progress: (message) => told.push(message) });
    expect(told.filter((message) => message.startsWith('The migration'))).toEqual([
      expect.stringMatching(
        /^The migration 20260101000000_one\.sql was edited after the database in \S+ took it, .*: put it back/,
      ),
    ]);
    // Where nothing is missing, the CLI is not started, which has a folder of its own.
    vi.stubEnv('TMPDIR', path.join(dataDir, 'nowhere'));
    await applyMigrations(third.dbUrl, { folder: migrations }).finally(() => vi.unstubAllEnvs());
    await third.stop();
    expect(fs.existsSync(dataDir)).toBe(true);

    // A migration that a deployment refuses, such as one that a colleague's branch brought with an older stamp.
    fs.writeFileSync(path.join(migrations, '20260101120000_between.sql'), 'create table public.between (id int);');
    await expect(startStack(options)).rejects.toThrow(
      /^20260101120000_between\.sql has an older stamp than .*: give it a newer one/,
    );
  });
});
