// One entity through five stages on an idle system: claim and complete of each stage, one after the other, each by a
// worker that has only just begun, as after a wake-up.
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type pg from 'pg';
import type { BenchDatabase } from '../database.ts';
import { stageNames } from '../engine.ts';
import { openSingleLead } from '../engines/floor.ts';
import { connectAsService, defineChain, stageWorker } from '../engines/millrace.ts';
import { median, type Result, round } from '../results.ts';

const repetitions = 40;

/** Medians in milliseconds from the first claim to the last completion, of Millrace and the floor in turn. */
export async function singleLead(database: BenchDatabase, progress: (message: string) => void): Promise<Result[]> {
  await defineChain(database.owner, 'columns');
  await database.owner.query(
    'truncate millrace.runs, millrace.attempts, millrace.claims, millrace.workers, millrace.wake_ups, public.bench_columns',
  );
  const service = await connectAsService(database.urls.api);
  const floor = await openSingleLead(database.owner);
  const times = { millrace: [] as number[], floor: [] as number[] };
  for (let number = 1; number <= repetitions; number += 1) {
    times.millrace.push(await millrace(database.owner, service, number));
    times.floor.push(await floor());
  }
  await service.end();
  const results = (['millrace', 'floor'] as const).map((engine) => ({
    work: 'chain one lead',
    engine,
    variant: 'idle, five stages in turn',
    // The first few find cold caches.
    value: round(median(times[engine].slice(5))),
    unit: 'ms',
  }));
  for (const { engine, value } of results) progress(`chain, one lead on an idle system: ${engine}: ${value} ms`);
  return results;
}

async function millrace(owner: pg.Client, service: pg.Client, id: number): Promise<number> {
  await owner.query(`insert into public.bench_columns (id, label, one_status) values ($1, 'one lead', 'queued')`, [id]);
  const leaving: string[] = [];
  const started = performance.now();
  for (const stage of stageNames) {
    const worker = stageWorker(service, 'bench_columns', stage, randomUUID(), 50);
    leaving.push(worker.id);
    const items = await worker.claim();
    if (items.length !== 1) throw new Error(`Stage ${stage} had ${items.length} attempts to claim, not one.`);
    await worker.complete(items);
  }
  const took = performance.now() - started;
  // A worker leaves after its last answer: nobody waits for that.
  for (const id of leaving) await service.query('select public.millrace_leave($1)', [id]);
  return took;
}
