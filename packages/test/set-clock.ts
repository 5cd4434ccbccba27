import type { Client } from 'pg';

/** Has the engine read its time from a table. In PL/pgSQL, which plans the function once a session. */
export async function setUpClock(sql: Client): Promise<void> {
  await sql.query(`
    create schema millrace_test;
    create table millrace_test.clock (at timestamptz not null);
    insert into millrace_test.clock values (now());
    create or replace function millrace.now() returns timestamptz
    language plpgsql volatile as 'begin return (select c.at from millrace_test.clock c); end'`);
}

/**
 * Sets the clock of a project that was swept and checked just now. Otherwise the first sweep of each test would judge alerts and check
 * all runs, which takes as long as the work of five stages.
 */
export async function setClock(sql: Client, at: Date): Promise<void> {
  const now = at.toISOString();
  await sql.query(`
    update millrace_test.clock set at = '${now}';
    update millrace.check_progress set ended_at = '${now}';
    update millrace.settings set value = case name when 'last_sweep_at' then '${now}' else '${now.slice(0, 16).replace('T', ' ')}' end
    where name in ('last_sweep_at', 'rules_judged_at')`);
}

/** Moves the clock on to a time, unless it is there. */
export async function moveClockTo(sql: Client, at: Date): Promise<void> {
  await sql.query('update millrace_test.clock set at = greatest(at, $1)', [at]);
}

export async function readClock(sql: Client): Promise<Date> {
  return (await sql.query('select at from millrace_test.clock')).rows[0].at;
}
