import type pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parseSchedule } from '../../local/platform/pg-cron/schedule.ts';
import { until } from '../support/until.ts';
import { type ContractTarget, startContractTarget } from './contract-target.ts';

let target: ContractTarget;
let client: pg.Client;

beforeAll(async () => {
  target = await startContractTarget('pg_cron');
  client = await target.connect();
  await client.query(`drop table if exists public.cron_contract;
                      create table public.cron_contract (note text, at timestamptz default clock_timestamp())`);
});
afterAll(async () => {
  await client.query('drop table public.cron_contract');
  await target.stop();
});
afterEach(async () => {
  await client.query(`select cron.unschedule(jobid) from cron.job where jobname like 'contract-%'`);
  await client.query('truncate public.cron_contract');
});

async function schedule(name: string, when: string, command: string): Promise<string> {
  const { rows } = await client.query('select cron.schedule($1, $2, $3) as id', [`contract-${name}`, when, command]);
  return rows[0].id;
}

async function notes(): Promise<{ note: string; at: Date }[]> {
  const { rows } = await client.query('select note, at from public.cron_contract order by at');
  return rows;
}

async function runs(jobid: string) {
  const { rows } = await client.query('select * from cron.job_run_details where jobid = $1 order by runid', [jobid]);
  return rows;
}

async function raised(statement: string): Promise<string> {
  try {
    await client.query(statement);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

const note = (text: string) => `insert into public.cron_contract (note) values ('${text}')`;

it('a sixth field is taken and not read: the first of six are the minutes', () => {
  const next = (text: string) => {
    const schedule = parseSchedule(text);
    return schedule.kind === 'calendar' && schedule.next(new Date('2026-11-02T09:00:01Z'))?.toISOString();
  };
  expect(next('*/2 * * * * *')).toBe('2026-11-02T09:02:00.000Z');
  expect(next('17 3 * * * 5')).toBe(next('17 3 * * *'));
});

describe('pg_cron', () => {
  it('updates the job of the same name and user instead of adding one', async () => {
    const first = await schedule('upsert', '5 4 * * *', 'select 1');
    const second = await schedule('upsert', '30 seconds', 'select 2');
    expect(second).toBe(first);
    const { rows } = await client.query(
      `select schedule, command, username = current_user as own, active from cron.job where jobname = 'contract-upsert'`,
    );
    expect(rows).toEqual([{ schedule: '30 seconds', command: 'select 2', own: true, active: true }]);
    await client.query('select cron.alter_job($1, active => false)', [first]);
    await schedule('upsert', '5 4 * * *', 'select 3');
    const { rows: after } = await client.query('select command, active from cron.job where jobid = $1', [first]);
    expect(after).toEqual([{ command: 'select 3', active: false }]);
  });

  it('adds a job without a name each time', async () => {
    const { rows } = await client.query(
      `select cron.schedule('5 4 * * *', 'select 1') as a, cron.schedule('5 4 * * *', 'select 1') as b`,
    );
    expect(rows[0].a).not.toBe(rows[0].b);
    await client.query('select cron.unschedule($1::bigint), cron.unschedule($2::bigint)', [rows[0].a, rows[0].b]);
  });

  it.each(['0 seconds', '60 seconds', '* * * *', 'every day', ''])('refuses the schedule "%s"', async (text) => {
    expect(await raised(`select cron.schedule('contract-bad', '${text}', 'select 1')`)).toMatch(/invalid schedule/);
  });

  it.each([
    '1 second',
    '59 seconds',
    '*/5 * * * *',
    '0 3 * * 1-5',
    '0 0 1,15 * *',
    '0 0 $ * *',
    '@daily',
    '*/2 * * * * *',
  ])('accepts the schedule "%s"', async (text) => {
    expect(await raised(`select cron.schedule('contract-good', '${text}', 'select 1')`)).toBe('');
  });

  it('runs a job every N seconds as the user who scheduled it, and records each run', async () => {
    const began = performance.now();
    const id = await schedule('seconds', '1 second', `insert into public.cron_contract (note) values (current_user)`);
    const rows = await until(async () => {
      const found = await notes();
      return found.length >= 3 && found;
    });
    const { rows: me } = await client.query('select current_user as name');
    expect(new Set(rows.map((row) => row.note))).toEqual(new Set([me[0].name]));
    // Never more than one a second, on a busy machine fewer.
    expect(rows.length).toBeLessThanOrEqual((performance.now() - began) / 1000 + 1);
    const [run] = await until(async () => {
      const found = await runs(id);
      return found[0]?.status === 'succeeded' && found;
    });
    expect(run.end_time.getTime()).toBeGreaterThanOrEqual(run.start_time.getTime());
    expect(run.job_pid).toBeGreaterThan(0);
  });

  it('runs one instance of a job at a time', async () => {
    await schedule('long', '1 second', `${note('begin')}; select pg_sleep(1.6); ${note('end')}`);
    const rows = await until(async () => {
      const found = await notes();
      return found.filter(({ note: text }) => text === 'end').length >= 2 && found;
    });
    // Each run is one transaction, so its two notes come into sight together; their times must not interleave.
    const texts = rows.slice(0, 4).map(({ note: text }) => text);
    expect(texts).toEqual(['begin', 'end', 'begin', 'end']);
  });

  it('records a failure with its message and goes on', async () => {
    const id = await schedule('failing', '1 second', 'select 1 / 0');
    const found = await until(async () => {
      const all = await runs(id);
      return all.filter(({ status }) => status === 'failed').length >= 2 && all;
    });
    expect(found[0].return_message).toMatch(/^ERROR: {2}division by zero\n$/);
  });

  it('records what the last statement of a command said, and all of an error', async () => {
    const commands: Record<string, string> = {
      [note('said')]: 'INSERT 0 1',
      [`${note('said')} returning note`]: '1 row',
      'select from generate_series(1, 2)': '2 rows',
      'select 1; create temporary table t ()': 'CREATE TABLE',
      '': '0 rows',
      "do $$ begin raise 'no' using detail = 'd', hint = 'h'; end $$":
        'ERROR:  no\nDETAIL:  d\nHINT:  h\nCONTEXT:  PL/pgSQL function inline_code_block line 1 at RAISE\n',
    };
    const ids = await Promise.all(
      Object.keys(commands).map((command, n) => schedule(`says-${n}`, '1 second', command)),
    );
    const found = await until(async () => {
      const first = await Promise.all(ids.map(async (id) => (await runs(id)).find(({ end_time }) => end_time)));
      return first.every(Boolean) && first;
    });
    expect(found.map(({ return_message }) => return_message)).toEqual(Object.values(commands));
  });

  it('lets the superuser alter any job and whose it is, and others their own', async () => {
    const superuser = await target.connectAsSuperuser?.();
    if (!superuser) return;
    const id = await schedule('altered', '* * * * *', note('never'));
    const { rows } = await superuser.query(`select cron.schedule('contract-theirs', '* * * * *', 'select 1') as id`);
    const theirs = rows[0].id;
    try {
      const job = async (jobid: string) =>
        (await superuser.query('select schedule, username, active from cron.job where jobid = $1', [jobid])).rows[0];
      await superuser.query(`select cron.alter_job($1, schedule => '*/2 * * * *', active => false)`, [id]);
      expect(await job(id)).toEqual({ schedule: '*/2 * * * *', username: 'postgres', active: false });
      expect(await raised(`select cron.alter_job(${theirs}, active => false)`)).toMatch(
        /does not exist or you don't own it/,
      );
      expect(await raised(`select cron.alter_job(${id}, username => 'postgres')`)).toMatch(/must be superuser/);
      expect(await raised(`select cron.alter_job(${id})`)).toMatch(/no updates specified/);
      await superuser.query(`select cron.alter_job($1, username => 'postgres')`, [theirs]);
      expect(await job(theirs)).toMatchObject({ username: 'postgres', active: true });
      expect(await raised(`select cron.alter_job(${theirs}, active => false)`)).toBe('');
    } finally {
      await superuser.query('select cron.unschedule($1::bigint)', [theirs]).catch(() => {});
    }
  });

  it('records a run that found no session', async () => {
    const superuser = await target.connectAsSuperuser?.();
    if (!superuser) return;
    const id = await schedule('lost', '1 second', note('never'));
    await superuser.query(`update cron.job set database = 'gone' where jobid = $1`, [id]);
    const run = await until(async () => (await runs(id)).find(({ status }) => status === 'failed'));
    expect(run).toMatchObject({ return_message: 'connection failed', job_pid: null });
    expect(run.end_time.getTime()).toBeGreaterThanOrEqual(run.start_time.getTime());
  });

  it('ends the session of a job that is removed or switched off meanwhile, and what it was at goes on', async () => {
    const ends: Record<string, string> = {
      removed: 'select cron.unschedule($1::bigint)',
      off: 'select cron.alter_job($1, active => false)',
    };
    for (const [name, statement] of Object.entries(ends)) {
      const id = await schedule(name, '1 second', `select pg_sleep(2); ${note(name)}`);
      await until(async () => (await runs(id)).find(({ status }) => status === 'running'));
      await client.query(statement, [id]);
      const run = await until(async () => (await runs(id)).find(({ end_time }) => end_time));
      expect(run).toMatchObject({ status: 'failed', return_message: 'job canceled' });
      await until(async () => (await notes()).some(({ note: text }) => text === name));
    }
  });

  it('stops a job that is switched off, changed or removed', async () => {
    const id = await schedule('switched', '1 second', note('on'));
    await until(async () => (await notes()).length > 0);
    await client.query('select cron.alter_job(job_id => $1, active => false)', [id]);
    await until(async () => (await runs(id)).every(({ end_time }) => end_time !== null));
    const before = (await runs(id)).length;
    await new Promise((resolve) => setTimeout(resolve, 1600));
    expect((await runs(id)).length).toBeLessThanOrEqual(before + 1);
    expect(await raised(`select cron.unschedule('contract-switched')`)).toBe('');
    expect(await raised(`select cron.unschedule('contract-switched')`)).toMatch(/could not find valid entry/);
  });
});
