// A function that reaches the platform's limit of CPU or memory releases all that it has in work. Some row of those is to
// blame, and each runs alone from then on until it is known which.
import { expect } from 'vitest';
import { defineFamily, numbers, Spawner, startFolders } from '../../support/engine/children.ts';
import { type Engine, type Row, test } from '../../support/engine.ts';
import { type Claimed, completed, released, Worker } from '../../support/worker.ts';

const atOnce = { backoff: { kind: 'list', seconds: [0] } };
const overLimit = (item: Claimed, limit = 'cpu'): Row => ({ ...released(item), limit });

const idsOf = (batch: Claimed[]) => batch.map((item) => item.entity_id).sort();
const waitingAlone = (engine: Engine) =>
  engine.rows(
    `select a.isolated, a.retry_count, a.releases from millrace.attempts a where a.state = 'queued' order by a.id`,
  );

/** Functions that each work until their stage is empty or their batch holds `guilty`; resolves to how many it ended. */
async function workThrough(engine: Engine, guilty: string | undefined, limit: string): Promise<number> {
  for (let ended = 0; ; ended++) {
    const worker = await Worker.of(engine, 'only');
    let batch = await worker.take();
    while (batch.length > 0 && !idsOf(batch).includes(guilty ?? '')) {
      ({ batch } = await worker.complete(
        batch.map((item) => completed(item)),
        10,
      ));
    }
    if (batch.length === 0) return ended;
    await worker.report(...batch.map((item) => overLimit(item, limit)));
    await worker.leave(true);
  }
}

test.for(['cpu', 'memory'])(
  'a row that exhausts the %s of its function fails alone, at no cost to nine others',
  async (limit, { engine }) => {
    await engine.pipeline([{ name: 'only', max_workers: 100, retry: { max_attempts: 4, ...atOnce } }]);
    const ids = await engine.queued('only', 10);
    // Once together with the others, then each attempt that it may make.
    expect(await workThrough(engine, ids[4], limit)).toBe(5);
    expect(await engine.rows('select entity_id, error_code from millrace.dead_letters')).toEqual([
      { entity_id: ids[4], error_code: 'resource_limit' },
    ]);
    expect(await engine.item(ids[4])).toMatchObject({
      only_status: 'failed',
      only_error: expect.stringContaining(limit === 'cpu' ? 'CPU time' : 'memory'),
      only_retry_count: 3,
    });
    for (const id of ids.filter((id) => id !== ids[4])) {
      expect(await engine.attempts(id)).toEqual(['only 1 completed']);
      expect(await engine.item(id)).toMatchObject({ only_retry_count: 0 });
    }
  },
);

test('an attempt that was released for a limit is due at once, and no host has two such in work', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only', max_workers: 100 }]);
  await engine.queued('only', 3);
  const worker = await Worker.of(engine, 'only');
  await worker.report(...(await worker.take()).map((item) => overLimit(item)));
  expect(await waitingAlone(engine)).toEqual(Array(3).fill({ isolated: true, retry_count: 0, releases: 0 }));
  const [one, beside, other] = [
    await Worker.of(engine, 'only', 'flow', 'aaaaaaaa-0000-4000-8000-000000000001'),
    await Worker.of(engine, 'only', 'flow', 'aaaaaaaa-0000-4000-8000-000000000001'),
    await Worker.of(engine, 'only'),
  ];
  expect(await one.take()).toMatchObject([{ isolated: true }]);
  expect(await beside.take()).toEqual([]);
  expect(await other.take()).toMatchObject([{ isolated: true }]);
});

test('a claim that must be alone scales its stage out while there is more, as a full one does', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', max_workers: 2 }]);
  await engine.queued('only', 3);
  const worker = await Worker.of(engine, 'only');
  await worker.report(...(await worker.take()).map((item) => overLimit(item)));
  await engine.sql.query('delete from millrace.wake_ups');
  expect((await worker.claim()).wake).toMatchObject([{ stage: 'only' }]);
});

test('releases for other causes send a row back among the others, and the third still fails it', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', max_workers: 100, retry: { max_attempts: 2, ...atOnce } }]);
  const ids = await engine.queued('only', 2);
  for (let time = 1; time <= 3; time++) {
    const batch = await (await Worker.of(engine, 'only')).take();
    expect(idsOf(batch)).toEqual(ids);
    expect(batch.map((item) => item.isolated)).toEqual([false, false]);
    const worker = await Worker.of(engine, 'only');
    await worker.claim(0);
    await worker.report(...batch.map(released));
  }
  expect(await engine.attempts(ids[0])).toEqual(['only 1 failed', 'only 2 queued']);
  expect(await waitingAlone(engine)).toEqual(Array(2).fill({ isolated: false, retry_count: 1, releases: 0 }));
});

test('a limit is no release in a row: two before it leave a row its turn alone', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const [id] = await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  await worker.report(released(await worker.takeOne()));
  await worker.report(released(await worker.takeOne()));
  await worker.report(overLimit(await worker.takeOne()));
  await worker.report(completed(await worker.takeOne()));
  expect(await engine.attempts(id)).toEqual(['only 1 completed']);
});

test('an attempt that ran alone stays isolated when its workers release it three times', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', retry: { max_attempts: 2, ...atOnce } }]);
  const [id] = await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  await worker.report(overLimit(await worker.takeOne()));
  for (let time = 1; time <= 3; time++) await worker.report(released(await worker.takeOne()));
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 queued']);
  expect(await waitingAlone(engine)).toEqual([{ isolated: true, retry_count: 1, releases: 0 }]);
});

test('a release that names an unknown limit is rejected, and the attempt stays held', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  const { items } = await worker.complete([overLimit(item, 'patience')]);
  expect(items).toMatchObject([
    { verdict: 'rejected', reason: expect.stringContaining('cpu, memory or left out, this is patience') },
  ]);
  expect(await worker.report(completed(item))).toEqual(['accepted']);
});

test('at a stage with groups an isolated attempt is claimed alone too, whatever group it is in', async ({ engine }) => {
  await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
  await engine.pipeline([{ name: 'only', limits: { concurrency: { column: 'key', limit: 5 } }, max_workers: 20 }]);
  await engine.sql.query(
    `insert into public.items (key, only_status) select k, 'queued' from unnest('{a,a,b}'::text[]) k`,
  );
  const worker = await Worker.of(engine, 'only');
  await worker.report(...(await worker.take()).map((item) => overLimit(item)));
  for (let left = 3; left > 0; left--) {
    const batch = await worker.take();
    expect(batch).toMatchObject([{ isolated: true }]);
    await worker.report(...batch.map((item) => completed(item)));
  }
  expect(await worker.take()).toEqual([]);
});

test('a map that reaches a limit between two chunks spawns the rest alone, and no child twice', async ({ engine }) => {
  await defineFamily(engine);
  const [id] = await startFolders(engine);
  const spawner = await Spawner.of(engine);
  await spawner.spawn(numbers(1, 3));
  const held = spawner.item as Claimed;
  expect(await spawner.worker.report(overLimit(held, 'memory'))).toEqual(['accepted']);
  const next = await Spawner.of(engine);
  expect((next.item as Claimed).isolated).toBe(true);
  await next.spawn(numbers(1, 4), true);
  expect(await engine.value('select count(*)::int from public.items where folder = $1', [id])).toBe(4);
});
