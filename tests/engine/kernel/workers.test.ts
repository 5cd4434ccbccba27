import { expect } from 'vitest';
import { type Engine, test } from '../../support/engine.ts';
import { begin, untilBlocked } from '../../support/sessions.ts';
import { Worker } from '../../support/worker.ts';

const workers = (engine: Engine, count: number) =>
  Promise.all(Array.from({ length: count }, () => Worker.of(engine, 'only')));

/** Signs a first worker on in an open transaction, for which a second waits; `other` is what that one hears. */
async function twoSigningOn(engine: Engine, maximum: number) {
  await engine.pipeline([{ name: 'only', max_workers: maximum }]);
  await engine.queued('only', 5);
  const [first, second] = await workers(engine, 2);
  if (!first || !second) throw new Error('two workers were made');
  await first.client.query('begin');
  expect((await first.claim(1)).status).toBe('working');
  const claim = begin(second.claim(1));
  await untilBlocked(engine, second.client);
  return { first, other: () => claim };
}

test('a worker above the maximum is sent home without being signed on', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', max_workers: 2 }]);
  await engine.queued('only', 5);
  const [first, second, third] = await workers(engine, 3);
  expect(await first?.claim(1)).toMatchObject({ status: 'working' });
  expect(await second?.claim(1)).toMatchObject({ status: 'working' });
  expect(await third?.claim(1)).toMatchObject({
    status: 'refused',
    reason: 'the stage has its maximum of live workers, 2',
    batch: [],
  });
  expect(await engine.value('select count(*)::int from millrace.workers')).toBe(2);
});

test('of two workers that sign on at once, only one becomes the last that the maximum allows', async ({ engine }) => {
  const { first, other } = await twoSigningOn(engine, 1);
  await first.client.query('commit');
  expect((await other()).status).toBe('refused');
});

test('a worker that waited to sign on is let in by what holds of its stage by then', async ({ engine }) => {
  const { first, other } = await twoSigningOn(engine, 2);
  await engine.sql.query(`select millrace.pause('flow', 'only')`);
  await first.client.query('commit');
  expect(await other()).toMatchObject({ status: 'refused', batch: [] });
});

test('of many workers that sign on at once, no more become live than the maximum', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', max_workers: 3 }]);
  await engine.queued('only', 50);
  const answers = await Promise.all((await workers(engine, 12)).map((worker) => worker.claim(1)));
  expect(answers.filter((answer) => answer.status === 'working')).toHaveLength(3);
  expect(answers.filter((answer) => answer.status === 'refused')).toHaveLength(9);
});

test('a worker that left or whose heartbeat is stale makes room for another', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', max_workers: 1 }]);
  const [first, second, third] = await workers(engine, 3);
  await first?.claim();
  await first?.leave();
  expect((await second?.claim())?.status).toBe('empty');
  await engine.advance('15 seconds');
  expect((await third?.claim())?.status).toBe('empty');
});

test('a full claim with more work behind it wakes for one more worker, up to the maximum', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', max_workers: 2 }]);
  await engine.queued('only', 10);
  const [first, second] = await workers(engine, 2);
  expect((await first?.claim(2))?.wake).toMatchObject([{ stage: 'only' }]);
  expect((await second?.claim(2))?.wake).toEqual([]);
});

test('a claim that is not full, or empties the stage, wakes for nobody', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', max_workers: 5 }]);
  await engine.queued('only', 4);
  const [first, second] = await workers(engine, 2);
  expect((await first?.claim(4))?.wake).toEqual([]);
  expect((await second?.claim(4))?.wake).toEqual([]);
});

test('a worker that scales out counts a wake-up that nobody has answered yet', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', max_workers: 5 }]);
  await engine.queued('only', 10);
  const [first] = await workers(engine, 1);
  expect((await first?.claim(2))?.wake).toHaveLength(1);
  expect((await first?.claim(2))?.wake).toEqual([]);
  await engine.advance('2 seconds');
  expect((await first?.claim(2))?.wake).toHaveLength(1);
});
