import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { postgresMajor } from '../support/postgres-major.ts';

let database: TestDatabase;
let postgres: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  postgres = await database.connect();
});
afterAll(() => database.drop());

async function refusal(client: pg.Client, statement: string): Promise<string | undefined> {
  try {
    await client.query(statement);
    return undefined;
  } catch (error) {
    return (error as { code: string }).code;
  }
}

describe('the role postgres', () => {
  it('is no superuser, may create roles and databases, and bypasses row-level security', async () => {
    const { rows } = await postgres.query(
      `select rolsuper, rolcreaterole, rolcreatedb, rolbypassrls from pg_roles where rolname = current_user`,
    );
    expect(rows).toEqual([{ rolsuper: false, rolcreaterole: true, rolcreatedb: true, rolbypassrls: true }]);
  });

  it('is refused what hosted Supabase refuses', async () => {
    expect(await refusal(postgres, `alter system set work_mem = '8MB'`)).toBe('42501');
    expect(await refusal(postgres, `copy (select 1) to program 'cat'`)).toBe('42501');
    expect(await refusal(postgres, `alter database postgres set app.secret = 'x'`)).toBe('42501');
    expect(await refusal(postgres, 'set role supabase_admin')).toBe('42501');
  });

  it('creates schemas, tables in public and trusted extensions', async () => {
    expect(await refusal(postgres, 'create schema mine; create table public.mine ()')).toBeUndefined();
    expect(await refusal(postgres, 'create extension pg_trgm with schema extensions')).toBeUndefined();
  });

  it('acts as anon, authenticated and service_role', async () => {
    for (const role of ['anon', 'authenticated', 'service_role']) {
      expect(await refusal(postgres, `set role ${role}`)).toBeUndefined();
      await postgres.query('reset role');
    }
  });

  it('schedules jobs, keeps secrets and queues requests', async () => {
    await postgres.query(`select cron.schedule('a', '* * * * *', 'select 1')`);
    await postgres.query(`select vault.create_secret('s3cret', 'name')`);
    await postgres.query(`select net.http_post(url => 'http://127.0.0.1:9/')`);
    const { rows } = await postgres.query(`select name, decrypted_secret from vault.decrypted_secrets`);
    expect(rows).toContainEqual({ name: 'name', decrypted_secret: 's3cret' });
    const stored = await postgres.query(`select secret from vault.secrets where name = 'name'`);
    expect(stored.rows[0].secret).not.toContain('s3cret');
  });

  it('has no statement that takes over two minutes', async () => {
    expect((await postgres.query('show statement_timeout')).rows).toEqual([{ statement_timeout: '2min' }]);
  });

  it('deletes what pg_cron keeps of runs, and lets no trigger hear of it', async () => {
    expect(await refusal(postgres, 'delete from cron.job_run_details')).toBeUndefined();
    const trigger =
      'create trigger heard after insert on cron.job_run_details execute function suppress_redundant_updates_trigger()';
    expect(await refusal(postgres, trigger)).toBe('42501');
  });

  it('cannot write the list of jobs or the secrets but through their functions', async () => {
    expect(await refusal(postgres, `update cron.job set command = 'select 2'`)).toBe('42501');
    expect(await refusal(postgres, `insert into vault.secrets (secret) values ('x')`)).toBe('42501');
  });
});

describe('anon and authenticated', () => {
  it.each(['anon', 'authenticated'])('%s reaches neither Vault nor the jobs', async (role) => {
    const client = await database.connect(role);
    expect(await refusal(client, 'select * from vault.decrypted_secrets')).toBe('42501');
    expect(await refusal(client, `select vault.create_secret('x', 'y')`)).toBe('42501');
    expect(await refusal(client, 'select * from cron.job')).toBe('42501');
    expect(await refusal(client, `select cron.schedule('a', '* * * * *', 'select 1')`)).toBe('42501');
  });
});

describe('what postgres makes in public', () => {
  it.each(['anon', 'authenticated', 'service_role'])(
    'is not granted to %s, but for what the Data API has no use for',
    async (role) => {
      await postgres.query(`drop table if exists public.made; create table public.made (id serial)`);
      const { rows } = await postgres.query(
        `select array(select a.privilege_type from aclexplode(c.relacl) a where a.grantee = $1::regrole order by 1) as rights
       from pg_class c where c.oid in ('public.made'::regclass, 'public.made_id_seq'::regclass) order by c.relkind`,
        [role],
      );
      const rights = ['REFERENCES', 'TRIGGER', 'TRUNCATE'];
      // The right MAINTAIN is of Postgres 17.
      if (postgresMajor >= 17) rights.unshift('MAINTAIN');
      expect(rows).toEqual([{ rights: ['UPDATE'] }, { rights }]);
      const client = await database.connect(role);
      expect(await refusal(client, 'select * from public.made')).toBe('42501');
    },
  );

  it('can be executed by public, where it is a function, until that is revoked', async () => {
    await postgres.query(`create function public.made() returns int language sql return 1`);
    const client = await database.connect('anon');
    expect(await refusal(client, 'select public.made()')).toBeUndefined();
    await postgres.query('revoke all on function public.made() from public');
    expect(await refusal(client, 'select public.made()')).toBe('42501');
  });
});

describe('the claims of a token', () => {
  it('are read by auth.uid(), auth.role() and auth.jwt()', async () => {
    const sub = '6b0e4c1c-7f0b-4d52-9c62-2c3f8f9a1f11';
    const client = await database.connect('authenticated', { sub, account: 7 });
    const { rows } = await client.query(`select auth.uid(), auth.role(), auth.jwt() ->> 'account' as account`);
    expect(rows).toEqual([{ uid: sub, role: 'authenticated', account: '7' }]);
  });
});
