// pg-boss with its batch calls. It has no fan-in, so the transaction that completes a batch and fetches the next also adds
// to a counter, and whoever finds it full inserts the join's job. All children of a batch get one output, which suits what
// they return here.
import { setTimeout as delay } from 'node:timers/promises';
import { type Engine, stageResult, type Task, type Worker } from '../../engine.ts';
import { close, connect, dropSchema } from '../../engines/pg-boss.ts';
import { addTally, closeTotal, createJoinCounter } from '../join-counter.ts';
import { oneAtATime } from '../one-at-a-time.ts';

const chunkSize = 5_000;

async function seed(task: Task): Promise<void> {
  await dropSchema(task);
  const { client, boss } = await connect(task);
  await createJoinCounter(client);
  for (const name of ['parents', 'children', 'join']) await boss.createQueue(name);
  await boss.insert('parents', [{ data: {} }]);
  await close(client, boss);
}

async function open(task: Task): Promise<Worker> {
  const [working, collecting] = await Promise.all([connect(task), connect(task)]);
  const { client, boss } = working;
  const { batch: batchSize, entities } = task;

  async function spawn(): Promise<void> {
    for (let first = 1; first <= entities; first += chunkSize) {
      const length = Math.min(chunkSize, entities - first + 1);
      await boss.insert(
        'children',
        Array.from({ length }, (_, place) => ({ data: { item: first + place } })),
      );
    }
    await client.query(closeTotal, [entities]);
  }
  async function step(ids: string[]): Promise<string[]> {
    await client.query('begin');
    await boss.complete('children', ids, stageResult);
    await client.query({ name: 'tally', text: addTally, values: [ids.length] });
    const next = await boss.fetch('children', { batchSize });
    await client.query('commit');
    return next.map(({ id }) => id);
  }
  return {
    async run(signal, finished) {
      const collect = oneAtATime(async () => {
        await collecting.client.query('begin');
        const { rows } = await collecting.client.query<{ ready: boolean }>('select join_counter.collect() as ready');
        const ready = rows[0]?.ready ?? false;
        if (ready) await collecting.boss.insert('join', [{ data: {} }]);
        await collecting.client.query('commit');
        if (ready) finished(entities);
      });
      const parents = await boss.fetch('parents', { batchSize: 1 });
      if (parents.length > 0) {
        await spawn();
        await boss.complete(
          'parents',
          parents.map(({ id }) => id),
          null,
        );
        collect.ask();
      }
      while (!signal.aborted) {
        let ids = (await boss.fetch('children', { batchSize })).map(({ id }) => id);
        if (ids.length === 0) await delay(1);
        while (ids.length > 0) {
          ids = await step(ids);
          collect.ask();
        }
      }
      await collect.settled();
    },
    async close() {
      for (const one of [working, collecting]) await close(one.client, one.boss);
    },
  };
}

export const engine: Engine = { seed, open };
