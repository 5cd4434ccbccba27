import { expect } from 'vitest';
import { test } from '../../support/engine.ts';
import { completed, failed, runStage, Worker } from '../../support/worker.ts';

const roots = [{ name: 'left' }, { name: 'right' }, { name: 'end', needs: ['left', 'right'] }];
const diamond = [
  { name: 'start' },
  { name: 'left', needs: ['start'] },
  { name: 'right', needs: ['start'] },
  { name: 'end', needs: ['left', 'right'] },
];

test('queueing one root of a fresh row starts all roots, and shows all of them', async ({ engine }) => {
  await engine.pipeline(roots);
  const [id] = await engine.queued('left');
  expect(await engine.attempts(id)).toEqual(['left 1 queued', 'right 1 queued']);
  expect(await engine.statuses(id)).toEqual({ left: 'queued', right: 'queued', end: 'pending' });
});

test('queueing all roots in one statement is one start of each', async ({ engine }) => {
  await engine.pipeline(roots);
  const id = await engine.value<string>(
    `insert into public.items (left_status, right_status) values ('queued', 'queued') returning id`,
  );
  expect(await engine.statuses(id)).toEqual({ left: 'queued', right: 'queued', end: 'pending' });
  expect(await engine.item(id)).toMatchObject({ left_error: null, right_error: null });
  for (const stage of ['left', 'right', 'end']) expect(await runStage(engine, stage)).toHaveLength(1);
  expect((await engine.run(id)).status).toBe('completed');
});

test('queueing one root of a finished run takes over the result of the other', async ({ engine }) => {
  await engine.pipeline(roots);
  const [id] = await engine.queued('left');
  for (const stage of ['left', 'right', 'end']) await runStage(engine, stage);
  await engine.queue('left', [id ?? '']);
  expect(await engine.statuses(id)).toEqual({ left: 'queued', right: 'completed', end: 'pending' });
  await runStage(engine, 'left');
  expect(await runStage(engine, 'right')).toHaveLength(0);
  await runStage(engine, 'end');
  expect((await engine.run(id)).status).toBe('completed');
});

test('a branch that the failed run left unfinished goes on beside the one queued again, and shows it', async ({
  engine,
}) => {
  await engine.pipeline(diamond);
  const [id] = await engine.queued('start');
  await runStage(engine, 'start');
  const worker = await Worker.of(engine, 'left');
  await worker.report(failed(await worker.takeOne(), { permanent: true }));
  expect(await engine.statuses(id)).toMatchObject({ left: 'failed', right: 'failed' });
  expect(await engine.item(id)).toMatchObject({ right_error: 'cancelled' });
  await engine.queue('left', [id ?? '']);
  expect(await engine.statuses(id)).toEqual({ start: 'completed', left: 'queued', right: 'queued', end: 'pending' });
  expect(await engine.item(id)).toMatchObject({ right_error: null });
  for (const stage of ['left', 'right', 'end']) expect(await runStage(engine, stage)).toHaveLength(1);
  expect((await engine.run(id)).status).toBe('completed');
});

test('both branches queued in one statement on a finished run both run again, once', async ({ engine }) => {
  await engine.pipeline(diamond);
  const [id] = await engine.queued('start');
  for (const stage of ['start', 'left', 'right', 'end']) await runStage(engine, stage);
  await engine.sql.query(`update public.items set left_status = 'queued', right_status = 'queued' where id = $1`, [id]);
  expect(await engine.statuses(id)).toEqual({ start: 'completed', left: 'queued', right: 'queued', end: 'pending' });
  for (const stage of ['left', 'right', 'end']) expect(await runStage(engine, stage)).toHaveLength(1);
  expect((await engine.run(id)).status).toBe('completed');
});

test('starting one branch of a live run over leaves its sibling alone and the join waits for both', async ({
  engine,
}) => {
  await engine.pipeline(diamond);
  const [id] = await engine.queued('start');
  for (const stage of ['start', 'left']) await runStage(engine, stage);
  const right = await Worker.of(engine, 'right');
  const held = await right.takeOne();
  await engine.queue('left', [id ?? '']);
  expect(await right.report(completed(held))).toEqual(['accepted']);
  expect(await runStage(engine, 'end')).toHaveLength(0);
  await runStage(engine, 'left');
  expect(await runStage(engine, 'end')).toHaveLength(1);
  expect((await engine.run(id)).status).toBe('completed');
});

test('a failed branch cancels its live sibling, whose worker hears that it is stale', async ({ engine }) => {
  await engine.pipeline(diamond);
  const [id] = await engine.queued('start');
  await runStage(engine, 'start');
  const [left, right] = [await Worker.of(engine, 'left'), await Worker.of(engine, 'right')];
  const held = await right.takeOne();
  await left.report(failed(await left.takeOne(), { permanent: true }));
  expect(await right.report(completed(held))).toEqual(['stale']);
  expect(await engine.attempts(id)).toEqual(['start 1 completed', 'left 1 failed', 'right 1 cancelled']);
});
