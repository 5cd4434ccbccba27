import { expect } from 'vitest';
import { defineCutOver, turn } from '../support/cut-over.ts';
import { type Engine, test } from '../support/engine.ts';
import { completed, failed, Worker } from '../support/worker.ts';

const both = `select n.entity_id from millrace.runs n join millrace.runs o on o.entity_id = n.entity_id and o.pipeline_id <> n.pipeline_id
  where n.status = 'running' and o.status = 'running'`;
const pick = <T>(choices: T[]): T => choices[Math.floor(Math.random() * choices.length)] as T;

/** What people do to a row and to the flag, whatever the other sessions are doing. */
const calls = [
  `select millrace.start('phases', $1)`,
  `select millrace.start('phases', $1, p_restart => true)`,
  `select millrace.start('monolith', $1)`,
  `select millrace.start('monolith', $1, p_restart => true)`,
  `update public.items set first_status = 'queued' where id = $1`,
  `update public.items set whole_status = 'queued' where id = $1`,
  `with held as materialized (select i.id from public.items i where $1::bigint > 0 order by i.id for update)
   update public.items i set first_status = 'queued' from held where i.id = held.id`,
  `select millrace.retry(max(r.id)) from millrace.runs r where r.entity_id = $1`,
  `select millrace.retry(min(r.id)) from millrace.runs r where r.entity_id = $1`,
  `select millrace.reset(min(r.id)) from millrace.runs r where r.entity_id = $1`,
  `select millrace.cancel(max(r.id)) from millrace.runs r where r.entity_id = $1 and r.status = 'running'`,
  `select millrace.set_cut_over('phases', case when $1::bigint % 2 = 0 then 'on' else 'off' end)`,
  `select millrace.set_cut_over('phases', 'share', random()::numeric) from public.items where id = $1`,
];

/** Runs calls chosen at random; those that the engine refuses are part of the game, anything else fails the test. */
async function play(engine: Engine, ids: string[], rounds: number): Promise<void> {
  const session = await engine.database.connect();
  for (let round = 0; round < rounds; round++) {
    await session.query(pick(calls), [pick(ids)]).catch((error: { code: string }) => {
      if (!/^MR00[345]$/.test(error.code)) throw error;
    });
  }
}

/** Works for one of the ways until the others are done, and fails one attempt in three. */
async function drain(engine: Engine, stage: string, pipeline: string, over: () => boolean): Promise<void> {
  const worker = await Worker.of(engine, stage, pipeline);
  while (!over()) {
    const items = await worker.take(3);
    const outcomes = items.map((item) => (Math.random() < 0.33 ? failed(item, { permanent: true }) : completed(item)));
    await worker.complete(outcomes);
  }
  await worker.leave();
}

test('whatever several sessions start, retry, cancel and turn at once, no row is under way both ways', {
  timeout: 60_000,
}, async ({ engine }) => {
  await defineCutOver(engine);
  await turn(engine, 'share', { share: 0.5 });
  const ids = await engine.insert(4);
  let over = false;
  const workers = [
    drain(engine, 'first', 'phases', () => over),
    drain(engine, 'second', 'phases', () => over),
    drain(engine, 'whole', 'monolith', () => over),
  ];
  const watch = (async () => {
    while (!over) expect(await engine.rows(both)).toEqual([]);
  })();
  try {
    await Promise.all(Array.from({ length: 4 }, () => play(engine, ids, 60)));
  } finally {
    over = true;
    await Promise.all([...workers, watch]);
  }
  await engine.expectSound();
  const ways = await engine.rows<{ runs: number }>(
    `select runs::int from millrace.cut_over_report where pipeline = 'phases'`,
  );
  for (const { runs } of ways) expect(runs).toBeGreaterThan(0);
});
