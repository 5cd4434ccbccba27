// Gates under a limit that they share: of its rate they take their part, and of nothing else.
import { expect } from 'vitest';
import { test } from '../../support/engine/shared-limits.ts';
import { type Engine, each, type Row } from '../../support/engine.ts';
import { completed, Worker } from '../../support/worker.ts';

const defineLimit = (engine: Engine, limits: Row) =>
  engine.sql.query(`select millrace.define_limit('scrapes', $1)`, [JSON.stringify(limits)]);
const gate = (name: string) => ({ name, kind: 'gate', limits: { shared: ['scrapes'] } });
const queuedAt = (engine: Engine, stage: string) =>
  engine.value<number>(
    `select count(*)::int from millrace.attempts a join millrace.stages s on s.id = a.stage_id
     where s.name = $1 and a.state = 'queued'`,
    [stage],
  );

test('two gates and a stage that share a rate pass and begin no more than it says', async ({ engine }) => {
  await defineLimit(engine, { rate: { count: 10, per_seconds: 60 } });
  await engine.pipeline([gate('jobs'), { name: 'after_jobs', needs: ['jobs'] }]);
  await engine.pipeline([gate('posts'), { name: 'after_posts', needs: ['posts'] }], {}, 'other');
  await engine.pipeline([{ name: 'own', limits: { shared: ['scrapes'] } }], {}, 'third');
  const worker = await Worker.of(engine, 'own', 'third');
  await engine.queued('own', 3);
  expect(await worker.take()).toHaveLength(3);
  await engine.queued('jobs', 6);
  await engine.queued('posts', 6);
  await engine.sql.query('select millrace.sweep()');
  expect((await queuedAt(engine, 'after_jobs')) + (await queuedAt(engine, 'after_posts'))).toBe(7);
  await engine.queued('own', 3);
  expect(await worker.take()).toHaveLength(0);
  await engine.advance('30 seconds');
  await engine.sql.query('select millrace.sweep()');
  expect((await queuedAt(engine, 'after_jobs')) + (await queuedAt(engine, 'after_posts'))).toBe(12);
});

test('a gate passes while all places in flight are taken, and a budget is spent', async ({ engine }) => {
  await defineLimit(engine, { max_in_flight: 1, spending: { usd: 1, per_seconds: 3600 } });
  await engine.pipeline([gate('jobs'), { name: 'after', needs: ['jobs'], limits: { shared: ['scrapes'] } }]);
  await engine.queued('jobs', 4);
  await engine.sql.query('select millrace.sweep()');
  const worker = await Worker.of(engine, 'after');
  const [item] = await worker.take();
  await worker.report({ ...completed(item as never), usage: { cost_usd: 1 } });
  await engine.queued('jobs', 2);
  await engine.sql.query('select millrace.sweep()');
  expect(await queuedAt(engine, 'jobs')).toBe(0);
  expect(await worker.take()).toEqual([]);
});

test('a gate waits for nobody who claims under its limit', async ({ engine }) => {
  await defineLimit(engine, { rate: { count: 10, per_seconds: 60 } });
  await engine.pipeline([gate('jobs'), { name: 'after', needs: ['jobs'] }]);
  await engine.pipeline([{ name: 'own', limits: { shared: ['scrapes'] } }], {}, 'other');
  await engine.queued('own', 3);
  const worker = await Worker.of(engine, 'own', 'other');
  await worker.client.query('begin');
  await worker.take();
  await engine.queued('jobs', 4);
  await engine.sql.query('select millrace.sweep()');
  expect(await queuedAt(engine, 'jobs')).toBe(4);
  await worker.client.query('commit');
  await engine.sql.query('select millrace.sweep()');
  expect(await queuedAt(engine, 'jobs')).toBe(0);
});

test('a clock that is set back keeps no gate shut, nor a stage unwoken', async ({ engine }) => {
  const rate = { count: 1, per_seconds: 1 };
  await defineLimit(engine, { rate });
  await engine.pipeline([gate('jobs'), { name: 'after_jobs', needs: ['jobs'] }]);
  await engine.pipeline(
    [
      { ...gate('posts'), limits: { rate } },
      { name: 'after_posts', needs: ['posts'] },
    ],
    {},
    'other',
  );
  await engine.pipeline([{ name: 'own', limits: { rate } }], {}, 'third');
  for (const stage of ['jobs', 'posts', 'own']) await engine.queued(stage, 3);
  await engine.sql.query('select millrace.sweep()');
  expect(await (await Worker.of(engine, 'own', 'third')).take()).toHaveLength(1);
  await engine.advance('-1 hour');
  await engine.sql.query('update millrace.attempts set queue_at = millrace.now() where queue_at > millrace.now()');
  await engine.sql.query('select millrace.sweep()');
  await engine.advance('1 second');
  await engine.sql.query('select millrace.sweep()');
  expect(await each(['jobs', 'posts', 'own'], (stage) => queuedAt(engine, stage))).toEqual([0, 0, 2]);
  expect(await engine.value(`select millrace.has_ready_work(id) from millrace.stages where name = 'own'`)).toBe(true);
});
