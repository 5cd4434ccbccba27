// A stack with the engine and five pipelines, left alone; then what a sweep costs in a session of its own, as pg_cron runs it.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { compiled, definitionOf } from '../../support/definitions.ts';
import { cpuByProgram, type Program } from '../cpu-by-program.ts';
import { createEntityTable } from '../engines/millrace.ts';
import { noOps } from '../hop/functions/_no-op.ts';
import { onAStack } from '../on-a-stack.ts';
import { median, type Values } from '../results.ts';

const migrationsFolder = path.join(import.meta.dirname, '..', '..', '..', 'supabase', 'migrations');
const functionsDir = path.join(import.meta.dirname, '..', 'hop', 'functions');
const pipelines = 5;
const sessions = 20;
/** Autovacuum looks after a database each minute, one after the other. */
const autovacuumMs = 150_000;
const minutesOfDay = 24 * 60;

/** Measures an idle stack for so many minutes. The CPU of `stack` is the stand-ins', which a hosted project has not. */
export async function measure({ minutes }: { minutes: number }): Promise<Values> {
  const migrations = engineMigrations();
  try {
    return await onAStack({ migrations, functionsDir, services: false }, async (stack, client) => {
      for (let number = 1; number <= pipelines; number += 1) {
        await createEntityTable(client, `bench_idle_${number}`, 'columns');
        await client.query('select millrace.define($1)', [compiled(definitionOf(noOps(`bench_idle_${number}`, 50)))]);
      }
      await settle(stack.superDbUrl);
      const before = { cpu: cpuByProgram(), wal: await writtenBytes(client) };
      await delay(minutes * 60_000);
      const cpu = cpuByProgram();
      const share = (program: Program) => (cpu[program] - before.cpu[program]) / (minutes * 600);
      const wal = (await writtenBytes(client)) - before.wal;
      return {
        'Postgres % of a core': share('Postgres'),
        'PostgREST % of a core': share('PostgREST'),
        'Deno % of a core': share('Deno'),
        'stand-ins % of a core': share('stack'),
        'WAL MB a day': (wal / 1e6 / minutes) * minutesOfDay,
        ...(await sessionCosts(stack.dbUrl)),
      };
    });
  } finally {
    fs.rmSync(migrations, { recursive: true });
  }
}

/** A folder with the engine's migrations alone: the examples would have sources to poll. */
function engineMigrations(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-bench-engine-'));
  const files = fs.readdirSync(migrationsFolder).filter((file) => /_millrace(?:_[\d.]+)?\.sql$/.test(file));
  for (const file of files) fs.copyFileSync(path.join(migrationsFolder, file), path.join(folder, file));
  return folder;
}

/** Leaves out what autovacuum does in the first minutes of a cluster, in each of its databases, once and for all. */
async function settle(superUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: superUrl });
  await client.connect();
  await client.query('vacuum analyze');
  await delay(autovacuumMs);
  await client.query('checkpoint');
  await client.end();
}

async function writtenBytes(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ bytes: number }>(
    `select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as bytes`,
  );
  return (rows[0] as { bytes: number }).bytes;
}

/** Milliseconds, and those of CPU, from the connection to the answer, medians of statements in turn. */
async function sessionCosts(url: string): Promise<Values> {
  const costs = { sweep: [] as Cost[], 'select 1': [] as Cost[] };
  for (let number = 1; number <= sessions; number += 1) {
    costs.sweep.push(await inFreshSession(url, 'select millrace.sweep()'));
    costs['select 1'].push(await inFreshSession(url, 'select 1'));
  }
  const columns = Object.entries(costs).flatMap(([name, all]) => [
    [`${name} ms`, median(all.map(({ ms }) => ms))],
    [`${name} CPU ms`, median(all.map(({ cpuMs }) => cpuMs))],
  ]);
  return Object.fromEntries(columns);
}

interface Cost {
  ms: number;
  cpuMs: number;
}

async function inFreshSession(url: string, statement: string): Promise<Cost> {
  const client = new pg.Client({ connectionString: url });
  const began = performance.now();
  await client.connect();
  await client.query(statement);
  const ms = performance.now() - began;
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const spent = fs.readFileSync(`/proc/${rows[0]?.pid}/schedstat`, 'utf8').split(' ')[0];
  await client.end();
  return { ms, cpuMs: Number(spent) / 1e6 };
}
