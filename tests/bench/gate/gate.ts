// How many rows a second pass a gate in the sweep, beside those that one worker takes through a plain stage of the same chain.

import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import { performance } from 'node:perf_hooks';
import type pg from 'pg';
import { compiled } from '../../support/definitions.ts';
import type { BenchDatabase } from '../database.ts';
import { connectAsService, stageWorker } from '../engines/millrace.ts';
import { median, type Result, round } from '../results.ts';

const rows = 20_000;
const rounds = 3;
const batch = 500;
const pressure = { back_pressure: { stage: 'fetch', backlog: 100_000 } };
const rate = { rate: { count: 1_000_000, per_seconds: 1 } };

/** The gates that a row has to pass: nothing but the pause, a rate, or a rate and room behind it. */
const limits = { 'no limits': undefined, 'a rate': rate, 'a rate and back-pressure': { ...rate, ...pressure } };

const values = ['new', 'queued', 'fetching', 'fetched', 'dead', 'working'];
const status = {
  column: 'status',
  values: { all: Object.fromEntries(values.map((value) => [value, ['A value']])) },
  failed: 'dead',
};
const fetch = { name: 'fetch', shows: { queued: 'queued', started: 'fetching', completed: 'fetched' } };

/** Defines a pipeline of two stages over a table of links that show their status in one word. */
async function define(owner: pg.Client, name: string, first: object): Promise<void> {
  await owner.query(`create table public.${name} (id bigint primary key, status text) with (fillfactor = 50)`);
  const stages = [
    { name: 'first', ...first },
    { ...fetch, needs: ['first'] },
  ];
  const entity = { table: `public.${name}`, key: 'id', projection: 'status', status };
  await owner.query('select millrace.define($1)', [compiled({ pipeline: name, entity, stages })]);
}

/** Queues all links at the first stage, and nothing else. */
async function fill(owner: pg.Client, name: string): Promise<void> {
  // The engine's tables first: emptying the links would otherwise delete their runs one by one.
  await owner.query('truncate millrace.runs, millrace.attempts, millrace.claims, millrace.workers, millrace.wake_ups');
  await owner.query(`truncate public.${name}`);
  await owner.query(`insert into public.${name} select i, 'new' from generate_series(1, $1::int) i`, [rows]);
  for (const table of [`public.${name}`, 'millrace.runs', 'millrace.attempts'])
    await owner.query(`vacuum analyze ${table}`);
}

interface Speed {
  /** Rows a second. */
  wall: number;
  /** Rows a second of the session's CPU, which says more where others use the machine; NaN where it cannot be read. */
  cpu: number;
}

/** The seconds of CPU that the server has spent on a session, as Linux tells them. */
async function cpuSeconds(client: pg.Client): Promise<number> {
  const { rows: found } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const file = `/proc/${found[0]?.pid}/stat`;
  if (!fs.existsSync(file)) return Number.NaN;
  const fields = fs.readFileSync(file, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function speedOf(client: pg.Client, act: () => Promise<void>): Promise<Speed> {
  const [started, spent] = [performance.now(), await cpuSeconds(client)];
  await act();
  const wall = rows / ((performance.now() - started) / 1000);
  return { wall, cpu: rows / ((await cpuSeconds(client)) - spent) };
}

/** As the sweep plans its statements. */
const planned = `set enable_seqscan = off; set enable_indexonlyscan = off; set enable_mergejoin = off;
  set enable_hashjoin = off; set enable_memoize = off; set jit = off; set plan_cache_mode = force_generic_plan`;

/** Passes all as the sweep does, a second at a time. */
async function passAll(owner: pg.Client, name: string): Promise<Speed> {
  await owner.query('select millrace.pause($1)', [name]);
  await fill(owner, name);
  await owner.query('select millrace.unpause($1)', [name]);
  await owner.query(planned);
  return speedOf(owner, async () => {
    for (let passed = 0; passed < rows; ) {
      const answer = await owner.query<{ passed: number | null }>(`select millrace.sweep_gates() as passed`);
      passed += answer.rows[0]?.passed ?? 0;
    }
  });
}

/** Takes all through a plain stage. */
async function workAll(owner: pg.Client, client: pg.Client, name: string): Promise<Speed> {
  await fill(owner, name);
  const worker = stageWorker(client, name, 'first', randomUUID(), batch);
  return speedOf(client, async () => {
    for (let items = await worker.claim(); items.length > 0; ) items = await worker.complete(items);
  });
}

/** Medians of rows a second, each variant in turn. */
export async function gate(database: BenchDatabase, progress: (message: string) => void): Promise<Result[]> {
  const { owner } = database;
  const service = await connectAsService(database.urls.api);
  const ways = new Map<string, { run: () => Promise<Speed>; found: Speed[] }>();
  for (const [place, [variant, given]] of Object.entries(limits).entries()) {
    const name = `bench_gate_${place}`;
    await define(owner, name, { kind: 'gate', limits: given, shows: { queued: 'new', completed: 'new' } });
    ways.set(`a gate with ${variant}`, { run: () => passAll(owner, name), found: [] });
  }
  const plain = { batch_size: batch, shows: { queued: 'new', started: 'working', completed: 'working' } };
  await define(owner, 'bench_gate_plain', plain);
  ways.set(`a plain stage, one worker, batch ${batch}`, {
    run: () => workAll(owner, service, 'bench_gate_plain'),
    found: [],
  });
  for (let number = 1; number <= rounds; number += 1) {
    for (const [variant, way] of ways) {
      const speed = await way.run();
      way.found.push(speed);
      progress(
        `gate ${number}/${rounds}: ${variant}: ${Math.round(speed.wall)} rows/s, ${Math.round(speed.cpu)} by CPU`,
      );
    }
  }
  await service.end();
  return (['wall', 'cpu'] as const).flatMap((clock) =>
    [...ways].map(([variant, { found }]) => ({
      work: 'gate',
      engine: 'millrace',
      variant,
      value: round(median(found.map((speed) => speed[clock]))),
      unit: clock === 'wall' ? 'rows/s' : 'rows/s of CPU',
    })),
  );
}
