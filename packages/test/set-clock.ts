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

export async function setClock(sql: Client, at: Date): Promise<void> {
  await sql.query('update millrace_test.clock set at = $1', [at]);
}

/** Moves the clock on to a time, unless it is there. */
export async function moveClockTo(sql: Client, at: Date): Promise<void> {
  await sql.query('update millrace_test.clock set at = greatest(at, $1)', [at]);
}

export async function readClock(sql: Client): Promise<Date> {
  return (await sql.query('select at from millrace_test.clock')).rows[0].at;
}
