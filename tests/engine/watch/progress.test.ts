// Progress is for every role that may select the row: real roles, under row-level security.
import { expect } from 'vitest';
import { blue, ownItems, progressOf, red, seen, userOf } from '../../support/engine/progress.ts';
import { chain, each, test } from '../../support/engine.ts';
import { completed, failed, finish, runStage, Worker } from '../../support/worker.ts';

const stages = chain(['one', 'two']);

test('a user sees the progress of the rows that they may select, and of no others', async ({ engine }) => {
  await engine.pipeline(stages);
  await ownItems(engine);
  const ids = await engine.queued('one', 2);
  await each(ids, (id) =>
    engine.rows('update public.items set owner = $2 where id = $1', [id, id === ids[0] ? red : blue]),
  );
  const user = await userOf(engine, red);
  const { rows, topic } = await progressOf(user, { [String(ids[0])]: null, [String(ids[1])]: null, 999: null });
  expect(topic).toBeNull();
  const [own, ...others] = ids.concat('999').map((id) => rows.find(({ key }) => key === id));
  expect(own).toMatchObject({
    pipeline: 'flow',
    progress: { run: { status: 'running' }, stages: { one: { state: 'queued', tries: 1 }, two: { state: 'pending' } } },
  });
  // Another's row looks like one that is not there.
  for (const other of others) expect(other).toMatchObject({ version: null, progress: null, expected_end: null });
  expect(await engine.rows('select from millrace.watches')).toEqual([]);
});

test('a role that may not select the table is refused', async ({ engine }) => {
  await engine.pipeline(stages);
  const [id] = await engine.queued('one');
  const anon = await engine.database.connect('anon');
  await expect(seen(anon, id)).rejects.toThrow('permission denied for table items');
});

test('a caller who knows the version is told nothing until something changes', async ({ engine }) => {
  await engine.pipeline(stages);
  const [id = ''] = await engine.queued('one');
  const service = await engine.database.connect('service_role');
  const first = await seen(service, id);
  expect((await progressOf(service, { [id]: first.version })).rows).toEqual([]);
  await finish(engine, 'one', { ok: true });
  const [next] = (await progressOf(service, { [id]: first.version })).rows;
  expect(next?.progress?.stages).toMatchObject({ one: { state: 'completed' }, two: { state: 'queued' } });
  expect(Object.keys(next?.progress?.stages ?? {})).toEqual(['one', 'two']);
  expect((await progressOf(service, { 999: '' })).rows).toEqual([]);
});

test('a row without a run has all its stages before it', async ({ engine }) => {
  await engine.pipeline(stages);
  const [id] = await engine.insert();
  const service = await engine.database.connect('service_role');
  expect((await seen(service, id)).progress).toEqual({
    run: null,
    stages: { one: { state: 'pending', tries: 0 }, two: { state: 'pending', tries: 0 } },
  });
});

test('a retry tells its try, when it is due, and the message of the error but not its detail', async ({ engine }) => {
  const definition = await engine.pipeline(
    chain(['one'], { retry: { max_attempts: 2, backoff: { kind: 'list', seconds: [60] } } }),
  );
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  await worker.report(failed(await worker.takeOne(), { detail: 'http://10.0.0.1 said 503' }));
  const service = await engine.database.connect('service_role');
  const error = { code: 'timeout', message: 'it took too long' };
  const { one } = (await seen(service, id)).progress?.stages ?? {};
  expect(one).toMatchObject({ state: 'queued', tries: 2, error, due_at: expect.any(String) });
  expect(one?.error).toEqual(error);
  // The definition says who sees the detail.
  await engine.define({ ...definition, progress: { details_to: ['service_role'] } });
  expect((await seen(service, id)).progress?.stages.one?.error).toEqual({
    ...error,
    detail: 'http://10.0.0.1 said 503',
  });
  await engine.define({ ...definition, progress: { details_to: ['authenticated'] } });
  expect((await seen(service, id)).progress?.stages.one?.error).toEqual(error);
  await worker.leave();
});

test('a run that is over says how it ended, also once it was pruned', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  const service = await engine.database.connect('service_role');
  const ended = await seen(service, id);
  expect(ended).toMatchObject({
    expected_end: null,
    progress: { run: { status: 'completed', ended_at: expect.any(String) } },
  });
  await engine.advance('100 days');
  await engine.rows('select millrace.prune()');
  expect(await engine.rows('select from millrace.runs')).toEqual([]);
  expect((await seen(service, id)).progress).toMatchObject({
    run: { status: 'completed' },
    stages: { one: { state: 'pruned' } },
  });
});

test('the expected end adds the medians of what is left, and what is under way counts from its start', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two']));
  const ids = await engine.queued('one', 5);
  for (const stage of ['one', 'two']) {
    const worker = await Worker.of(engine, stage);
    const items = await worker.take();
    await engine.advance('40 seconds');
    await worker.complete(items.map((item) => completed(item)));
    await worker.leave();
  }
  await engine.queue('one', ids.slice(0, 1));
  const service = await engine.database.connect('service_role');
  const left = async () => {
    const { expected_end: end } = await seen(service, ids[0]);
    return end === null ? null : (Date.parse(end) - (await engine.now()).getTime()) / 1000;
  };
  // No figure has been added up yet.
  expect(await left()).toBeNull();
  await engine.sweepAll();
  // The figures know times by their buckets: 40 s is somewhere in one.
  const whole = (await left()) ?? 0;
  expect(whole).toBeGreaterThan(50);
  expect(whole).toBeLessThan(160);
  const worker = await Worker.of(engine, 'one');
  await worker.takeOne();
  await engine.advance('10 seconds');
  expect(await left()).toBeCloseTo(whole - 10, 0);
  await worker.leave();
});

const keys = Object.fromEntries(Array.from({ length: 501 }, (_, n) => [n, null]));

test.for([
  ['a list', '[]', 'p_rows must be an object of pipelines, with at most 500 keys'],
  ['a list of keys', '{"flow": ["7"]}', 'p_rows must be an object of pipelines, with at most 500 keys'],
  ['a pipeline that there is not', '{"other": {"7": null}}', 'there is no pipeline other'],
  ['a key of the wrong type', '{"flow": {"x": null}}', 'invalid input syntax for type bigint'],
  [
    'more than 500 rows',
    JSON.stringify({ flow: keys }),
    'p_rows must be an object of pipelines, with at most 500 keys',
  ],
] as const)('%s is refused with the reason', async ([, rows, message], { engine }) => {
  await engine.pipeline(stages);
  const { message: said } = await engine.refusal('select public.millrace_progress($1)', [rows]);
  expect(said).toContain(message);
});

test('the refusal of a pipeline that there is not names no other pipeline, since strangers may ask', async ({
  engine,
}) => {
  await engine.pipeline(stages);
  const { code, hint } = await engine.refusal('select public.millrace_progress($1)', ['{"other": {"7": null}}']);
  expect([code, hint]).toEqual(['MR003', undefined]);
});
