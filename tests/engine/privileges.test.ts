import fs from 'node:fs';
import type pg from 'pg';
import { parse } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

interface Callable {
  signature: string;
  schema: string;
  call: string;
}

/** The functions that operators call; who is none is refused by each. */
const ofOperators =
  /^millrace_(act|alerts|attempt|dead_letters|journal|overview|pipeline|run|runs|search|limits|settings|status|series|costs|touched)\(jsonb\)$/;

let database: TestDatabase;
let functions: Callable[];
const roles = ['anon', 'authenticated', 'service_role'];
const sessions: Record<string, pg.Client> = {};

beforeAll(async () => {
  database = await createTestDatabase();
  const owner = await database.connect();
  // A call with nulls of the right types is enough: the right to execute is looked at first.
  const { rows } = await owner.query<Callable>(`
    select p.oid::regprocedure::text as signature, n.nspname as schema, format('select %I.%I(%s)', n.nspname, p.proname,
      (select string_agg(format('null::%s', format_type(t.type, null)), ', ' order by t.place) from unnest(p.proargtypes) with ordinality t(type, place))) as call
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname = 'millrace' or (n.nspname = 'public' and p.proname like 'millrace\\_%') order by 1`);
  functions = rows;
  for (const role of roles) sessions[role] = await database.connect(role);
});
afterAll(() => database.drop());

/** SQLSTATE and message of a statement, '00000' when it went through. */
async function answer(role: string, statement: string): Promise<{ code: string; message: string }> {
  const client = sessions[role];
  if (!client) throw new Error(`no session for ${role}`);
  try {
    await client.query(statement);
    return { code: '00000', message: '' };
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return { code, message };
  }
}

describe.each(roles)('%s', (role) => {
  it('can call no function of the schema millrace', async () => {
    const inside = functions.filter((fn) => fn.schema === 'millrace');
    expect(inside.length).toBeGreaterThan(60);
    for (const fn of inside) {
      const { code, message } = await answer(role, fn.call);
      expect({ signature: fn.signature, code, message }).toEqual({
        signature: fn.signature,
        code: '42501',
        message: 'permission denied for schema millrace',
      });
    }
  });

  it('can read and write no table, view or sequence of the schema millrace', async () => {
    const owner = await database.connect();
    const { rows } = await owner.query<{ name: string }>(
      `select c.oid::regclass::text as name from pg_class c
       where c.relnamespace = 'millrace'::regnamespace and c.relkind in ('r', 'v', 'S')`,
    );
    expect(rows.length).toBeGreaterThan(10);
    for (const { name } of rows) {
      expect(await answer(role, `select * from ${name}`)).toMatchObject({ code: '42501' });
      expect(await answer(role, `delete from ${name}`)).toMatchObject({ code: '42501' });
    }
  });

  it('would be refused by each function itself, were the schema ever opened', async () => {
    const owner = await database.connect();
    const { rows } = await owner.query(
      `select p.oid::regprocedure::text as signature from pg_proc p
       where p.pronamespace = 'millrace'::regnamespace and has_function_privilege($1, p.oid, 'execute')`,
      [role],
    );
    expect(rows).toEqual([]);
  });
});

describe('the public functions', () => {
  const named = () => functions.filter((fn) => fn.schema === 'public').map((fn) => fn.signature.replace(/\(.*/, ''));

  it('are these and no others', () => {
    expect(named()).toEqual([
      'millrace_act',
      'millrace_alerts',
      'millrace_attempt',
      'millrace_attend',
      'millrace_checkpoint',
      'millrace_claim',
      'millrace_collect_children',
      'millrace_complete',
      'millrace_connect',
      'millrace_costs',
      'millrace_dead_letters',
      'millrace_decide',
      'millrace_health',
      'millrace_job_owner',
      'millrace_journal',
      'millrace_keep_page',
      'millrace_leave',
      'millrace_limits',
      'millrace_metrics',
      'millrace_note_deliveries',
      'millrace_note_faults',
      'millrace_note_jobs',
      'millrace_overview',
      'millrace_pipeline',
      'millrace_poll',
      'millrace_progress',
      'millrace_renew',
      'millrace_resume',
      'millrace_run',
      'millrace_runs',
      'millrace_search',
      'millrace_series',
      'millrace_settings',
      'millrace_spawn',
      'millrace_status',
      'millrace_sweep',
      'millrace_take_messages',
      'millrace_tell_form',
      'millrace_touched',
      'millrace_turns',
      'millrace_wake',
      'millrace_wake_answer',
    ]);
  });

  it.each(['anon', 'authenticated'])('cannot be called by %s, but for own decisions and progress', async (role) => {
    const decision = 'millrace_decide(bigint,jsonb)';
    for (const fn of functions.filter(({ schema }) => schema === 'public')) {
      if (fn.signature === 'millrace_progress(jsonb,uuid)') {
        expect(await answer(role, fn.call)).toMatchObject({ code: 'MR002' });
        continue;
      }
      if (role === 'authenticated' && fn.signature === decision) continue;
      if (role === 'authenticated' && ofOperators.test(fn.signature)) {
        expect(await answer(role, fn.call)).toEqual({ code: '42501', message: 'you are no operator here' });
        continue;
      }
      expect({ ...fn, ...(await answer(role, fn.call)) }).toMatchObject({
        code: '42501',
        message: expect.stringMatching(/permission denied for function millrace_/),
      });
    }
  });

  it('can be called by service_role, and answer nulls with an error that names the argument', async () => {
    for (const fn of functions.filter(({ schema }) => schema === 'public')) {
      const { code, message } = await answer('service_role', fn.call);
      expect({ signature: fn.signature, code, message }).toMatchObject({
        code: expect.stringMatching(/^(00000|MR00[236])$/),
      });
    }
  });
});

it('the Data API exposes the schema public alone', () => {
  const config = parse(fs.readFileSync(new URL('../../supabase/config.toml', import.meta.url), 'utf8'));
  expect(config).toMatchObject({ api: { schemas: ['public'] } });
});
