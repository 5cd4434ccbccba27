// A verb over all runs that match a filter: previewed, worked off in slices, and stopped at any step without loss.
import { describe, expect } from 'vitest';
import { journal, type Operator, signIn } from '../../support/engine/operators.ts';
import { chain, type Engine, type Row, findingsTest as test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, failed, Worker } from '../../support/worker.ts';

const stages = chain(['one', 'two'], { retry: { max_attempts: 1 } });

/** Rows whose runs have failed for good at `one`, with these codes in turn; resolves to their ids. */
async function deadLetters(engine: Engine, count: number, codes = ['gone']): Promise<string[]> {
  const ids = await engine.queued('one', count);
  const worker = await Worker.of(engine, 'one');
  for (let left = count; left > 0; left -= 500) {
    const items = await worker.take(500);
    await worker.report(
      ...items.map((item, place) => failed(item, { code: codes[place % codes.length], permanent: true })),
    );
  }
  await worker.leave();
  return ids;
}

const statuses = async (engine: Engine) =>
  Object.fromEntries(
    (await engine.rows('select status, count(*)::int as runs from millrace.runs group by 1')).map((row) => [
      row.status,
      row.runs,
    ]),
  );

/** How often each failed run has been tried again: the numbers of attempts there are of one stage and run. */
const tries = (engine: Engine) =>
  engine.rows(
    `select number, count(*)::int as runs from (select run_id, max(number) as number from millrace.attempts group by 1) a
     group by 1 order by 1`,
  );

async function preview(operator: Operator, change: Row, filter: Row = {}, more: Row = {}) {
  return operator.act<{ bulk: number; preview: Row }>('preview', {
    do: change,
    filter: { pipeline: 'flow', ...filter },
    ...more,
  });
}

/** Works a bulk off; resolves to what it came to. */
async function workOff(operator: Operator, bulk: number): Promise<Row> {
  for (let slice = 0; slice < 100; slice++) {
    const answer = await operator.act('continue', { bulk });
    if (answer.state !== 'running') return answer;
  }
  throw new Error(`bulk ${bulk} does not end`);
}

test('a preview counts what matches and does nothing; then slices do it to exactly that', async ({ engine }) => {
  await engine.pipeline(stages);
  await deadLetters(engine, 1200, ['gone', 'late']);
  const operator = await signIn(engine, 'ann', {});
  const { bulk, preview: seen } = await preview(operator, { verb: 'retry' }, { error_code: 'gone' });
  expect(seen).toEqual({ runs: '600', oldest: expect.any(String), newest: expect.any(String) });
  expect(await statuses(engine)).toEqual({ failed: 1200 });
  expect(await operator.act('continue', { bulk })).toMatchObject({ state: 'previewed', done: 0 });
  expect(await statuses(engine)).toEqual({ failed: 1200 });
  expect(await operator.act('begin', { bulk, reason: 'the site is back' })).toMatchObject({
    state: 'running',
    done: 0,
  });
  expect(await operator.act('continue', { bulk })).toMatchObject({ state: 'running', done: 500 });
  expect(await workOff(operator, bulk)).toMatchObject({ state: 'done', done: 600, faults: 0, passed_over: 0 });
  expect(await statuses(engine)).toEqual({ failed: 600, running: 600 });
  expect(await operator.ask('dead_letters', { pipeline: 'flow' })).toMatchObject({
    groups: [{ stage: 'one', error_code: 'late', runs: '600' }],
  });
  const lines = await journal(engine);
  expect(lines).toMatchObject([
    { verb: 'preview' },
    { verb: 'begin', reason: 'the site is back', filter: { error_code: 'gone', status: 'failed' } },
    { verb: 'retry', runs: 500, subject: 'ann', reason: 'the site is back' },
    { verb: 'retry', runs: 100, subject: 'ann' },
  ]);
  expect(new Set(lines.flatMap((line) => line.run_ids as string[])).size).toBe(600);
});

test('a bulk is tried with one run, which waits with the rest until somebody begins it, and is done once', async ({
  engine,
}) => {
  await engine.pipeline(stages);
  await deadLetters(engine, 3);
  const operator = await signIn(engine, 'ann', {});
  const { bulk } = await preview(operator, { verb: 'retry' });
  const tried = await operator.act('try', { bulk, reason: 'is the site back?' });
  expect(tried).toMatchObject({ state: 'previewed', done: 1, tried: expect.any(Number) });
  expect(await statuses(engine)).toEqual({ failed: 2, running: 1 });
  await engine.sql.query('select millrace.sweep()');
  expect(await statuses(engine)).toEqual({ failed: 2, running: 1 });
  expect(await operator.ask('runs', { runs: [tried.tried] })).toMatchObject({ runs: [{ status: 'running' }] });
  const worker = await Worker.of(engine, 'one');
  await worker.report(completed(await worker.takeOne()));
  await operator.act('begin', { bulk });
  expect(await workOff(operator, bulk)).toMatchObject({ state: 'done', done: 3, passed_over: 0 });
  expect(await tries(engine)).toEqual([{ number: 2, runs: 3 }]);
  expect(await operator.refused('try', { bulk })).toMatchObject({
    message: `bulk ${bulk} cannot be tried: it is done`,
  });
});

test('a run that matches after the preview is not part of a bulk, nor one that fails again', async ({ engine }) => {
  await engine.pipeline(stages);
  await deadLetters(engine, 3);
  const operator = await signIn(engine, 'ann', {});
  const { bulk } = await preview(operator, { verb: 'retry' });
  await engine.advance('1 second');
  await deadLetters(engine, 2);
  await operator.act('begin', { bulk });
  expect(await workOff(operator, bulk)).toMatchObject({ state: 'done', done: 3 });
  expect(await statuses(engine)).toEqual({ failed: 2, running: 3 });
});

test('a run that fails again after the clock was set back is taken no second time', async ({ engine }) => {
  await engine.pipeline(stages);
  await deadLetters(engine, 510);
  const operator = await signIn(engine, 'ann', {});
  const { bulk } = await preview(operator, { verb: 'retry' });
  await operator.act('begin', { bulk });
  expect(await operator.act('continue', { bulk })).toMatchObject({ done: 500 });
  const worker = await Worker.of(engine, 'one');
  const again = await worker.take(500);
  await engine.advance('-1 hour');
  await worker.report(...again.map((item) => failed(item, { code: 'gone', permanent: true })));
  expect(await workOff(operator, bulk)).toMatchObject({ state: 'done', done: 510, passed_over: 500 });
  expect(await tries(engine)).toEqual([{ number: 2, runs: 510 }]);
});

test('a verb that goes run by run, such as the retry of a stage, goes in slices of a hundred', async ({ engine }) => {
  await engine.pipeline(stages);
  await deadLetters(engine, 110);
  const operator = await signIn(engine, 'ann', {});
  const { bulk } = await preview(operator, { verb: 'retry', stage: 'one' });
  await operator.act('begin', { bulk });
  expect(await operator.act('continue', { bulk })).toMatchObject({ state: 'running', done: 100 });
  expect(await workOff(operator, bulk)).toMatchObject({ state: 'done', done: 110 });
});

test('runs that change meanwhile are passed over', async ({ engine }) => {
  await engine.pipeline(stages);
  const [first, second] = await deadLetters(engine, 3);
  const operator = await signIn(engine, 'ann', {});
  const { bulk } = await preview(operator, { verb: 'retry' });
  await operator.act('begin', { bulk });
  await engine.sql.query('select millrace.retry($1)', [(await engine.run(first)).id]);
  await engine.sql.query('delete from public.items where id = $1', [second]);
  expect(await workOff(operator, bulk)).toMatchObject({ state: 'done', done: 1, faults: 0 });
  expect(await tries(engine)).toEqual([{ number: 2, runs: 2 }]);
});

test('a run to which the verb cannot be done is a fault by its number, one with a later run is passed over', async ({
  engine,
}) => {
  await engine.pipeline(stages);
  const ids = await deadLetters(engine, 40);
  const [overtaken, refused] = [ids[7] as string, ids[23] as string];
  await engine.queue('one', [overtaken]);
  const worker = await Worker.of(engine, 'one');
  await worker.report(failed(await worker.takeOne(), { code: 'gone', permanent: true }));
  await engine.sql.query(`
    create function public.refuse() returns trigger language plpgsql as
      $$ begin raise exception 'not this row'; end $$;
    create trigger refuse before update on public.items for each row when (old.id = ${refused}) execute function public.refuse()`);
  const operator = await signIn(engine, 'ann', {});
  const { bulk } = await preview(operator, { verb: 'retry' });
  await operator.act('begin', { bulk });
  expect(await workOff(operator, bulk)).toMatchObject({
    state: 'done',
    done: 39,
    faults: 1,
    passed_over: 1,
    faults_by_run: [{ run: Number((await engine.run(refused)).id), message: 'not this row' }],
  });
});

test('a run that has gone on meanwhile is passed over; one that has yet to come there, or never will, is a fault', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one']));
  await engine.queued('one', 1);
  await engine.pipeline(stages);
  await engine.queued('one', 4);
  const operator = await signIn(engine, 'ann', {});
  const skip = (await preview(operator, { verb: 'skip', stage: 'two' })).bulk;
  const hurry = (await preview(operator, { verb: 'hurry' })).bulk;
  const fail = (await preview(operator, { verb: 'fail', stage: 'one', message: 'no', permanent: true })).bulk;
  const worker = await Worker.of(engine, 'one');
  await worker.report(...(await worker.take()).slice(1, 4).map((item) => completed(item)));
  for (const bulk of [hurry, fail, skip]) await operator.act('begin', { bulk });
  expect(await workOff(operator, hurry)).toMatchObject({ done: 0, passed_over: 5, faults: 0 });
  const faults_by_run = ['not part of the version', 'it is pending'].map((why) => ({
    code: 'MR004',
    message: expect.stringContaining(why),
  }));
  expect(await workOff(operator, skip)).toMatchObject({ done: 3, passed_over: 0, faults: 2, faults_by_run });
  expect(await workOff(operator, fail)).toMatchObject({ done: 2, faults: 0 });
});

test('a preview says what it costs, by what completed attempts of each stage that begins have cost in the mean', async ({
  engine,
}) => {
  await engine.pipeline(stages);
  await engine.queued('one', 6);
  const operator = await signIn(engine, 'ann', {});
  const cost = async (change: Row) => (await preview(operator, change, { status: 'failed' })).preview.cost_usd;
  const of = (cost_usd: number) => ({ usage: { cost_usd } });
  const one = await Worker.of(engine, 'one');
  const items = await one.take(6);
  await one.report(...items.slice(0, 2).map((item) => failed(item, { code: 'gone', permanent: true })));
  expect(await cost({ verb: 'retry' })).toBeUndefined();
  await one.report(...items.slice(2).map((item, place) => ({ ...completed(item), ...of(0.1 * (place % 2) + 0.1) })));
  const two = await Worker.of(engine, 'two');
  const later = await two.take(4);
  await two.report(
    ...later.slice(0, 1).map((item) => ({ ...failed(item, { code: 'late', permanent: true }), ...of(100) })),
    ...later.slice(1).map((item) => ({ ...completed(item), ...of(2) })),
  );
  await engine.sweepAll();
  // Two runs from one on, a third from two on.
  expect(await cost({ verb: 'retry' })).toBe(6.3);
  expect(await cost({ verb: 'reset' })).toBe(6.45);
  expect(await cost({ verb: 'reset', stage: 'two' })).toBe(6);
  expect(await cost({ verb: 'skip', stage: 'one' })).toBe(6);
  expect(await cost({ verb: 'cancel' })).toBeUndefined();
});

test('rows that somebody holds are waited for by nobody, and come later', async ({ engine }) => {
  await engine.pipeline(stages);
  const ids = await deadLetters(engine, 5);
  const operator = await signIn(engine, 'ann', {});
  const { bulk } = await preview(operator, { verb: 'retry' });
  await operator.act('begin', { bulk });
  const holder = await openTransaction(engine);
  await holder.query('select from public.items where id = $1 for update', [ids[2]]);
  expect(await operator.act('continue', { bulk })).toMatchObject({ state: 'running', done: 4, locked: 1 });
  expect(await operator.act('continue', { bulk })).toMatchObject({ state: 'running', done: 4, locked: 1 });
  await holder.query('commit');
  expect(await operator.act('continue', { bulk })).toMatchObject({ state: 'done', done: 5, locked: 0 });
  expect(await tries(engine)).toEqual([{ number: 2, runs: 5 }]);
});

test('a row that went past the triggers is waited for by nobody: its run is passed over', async ({ engine }) => {
  await engine.pipeline(stages);
  const ids = await deadLetters(engine, 3);
  const operator = await signIn(engine, 'ann', {});
  const { bulk } = await preview(operator, { verb: 'retry' });
  await operator.act('begin', { bulk });
  await engine.sql.query('alter table public.items disable trigger user');
  await engine.sql.query('delete from public.items where id = $1', [ids[1]]);
  await engine.sql.query('alter table public.items enable trigger user');
  expect(await operator.act('continue', { bulk })).toMatchObject({ state: 'done', done: 2, locked: 0, passed_over: 1 });
});

const verbs: [Row, Row, Row][] = [
  [{ verb: 'cancel' }, {}, { cancelled: 4 }],
  [{ verb: 'skip', stage: 'one' }, {}, { running: 4 }],
  [{ verb: 'fail', stage: 'one', message: 'no', permanent: true }, {}, { failed: 4 }],
  [{ verb: 'reset', stage: 'one' }, { status: 'running' }, { running: 4 }],
  [{ verb: 'reset' }, { status: 'running', stage: 'one' }, { running: 4 }],
];

test.for(verbs)('the verb %j is done to each run of %j', async ([change, filter, expected], { engine }) => {
  await engine.pipeline(stages);
  await engine.queued('one', 4);
  const operator = await signIn(engine, 'ann', {});
  const { bulk } = await preview(operator, change, filter);
  await operator.act('begin', { bulk });
  expect(await workOff(operator, bulk)).toMatchObject({ state: 'done', done: 4, faults: 0 });
  expect(await statuses(engine)).toEqual(expected);
});

test('retries in backoff are hurried in bulk', async ({ engine }) => {
  await engine.pipeline(chain(['one'], { retry: { max_attempts: 3, backoff: { kind: 'list', seconds: [600] } } }));
  await engine.queued('one', 4);
  const worker = await Worker.of(engine, 'one');
  await worker.report(...(await worker.take()).map((item) => failed(item, { code: 'late' })));
  expect(await worker.take()).toEqual([]);
  const operator = await signIn(engine, 'ann', {});
  const { bulk, preview: seen } = await preview(operator, { verb: 'hurry' }, { error_code: 'late' });
  expect(seen).toMatchObject({ runs: '4' });
  await operator.act('begin', { bulk });
  expect(await workOff(operator, bulk)).toMatchObject({ done: 4, faults: 0 });
  expect(await worker.take()).toHaveLength(4);
});

describe('who may', () => {
  test('an operator whose role is taken away between preview and begin is refused', async ({ engine }) => {
    await engine.pipeline(stages);
    await deadLetters(engine, 2);
    const operator = await signIn(engine, 'ann', {});
    const { bulk } = await preview(operator, { verb: 'retry' });
    await engine.sql.query(`update millrace.operators set role = 'viewer' where subject = 'ann'`);
    expect(await operator.refused('begin', { bulk })).toMatchObject({ code: '42501' });
    expect(await statuses(engine)).toEqual({ failed: 2 });
  });

  test.for([
    `delete from millrace.operators where subject = 'ann'`,
    `update millrace.operators set role = 'viewer' where subject = 'ann'`,
    `update millrace.operators set pipelines = '{leads}' where subject = 'ann'`,
  ])(
    'a bulk is aborted where its owner may no longer act: %s; another begins one for the rest',
    async (taken, { engine }) => {
      await engine.pipeline(stages);
      await deadLetters(engine, 600);
      const ann = await signIn(engine, 'ann', {});
      const { bulk } = await preview(ann, { verb: 'retry' });
      await ann.act('begin', { bulk });
      await ann.act('continue', { bulk });
      await engine.sql.query(taken);
      await engine.sql.query('select millrace.sweep()');
      const ben = await signIn(engine, 'ben', {});
      expect(await ben.act('continue', { bulk })).toMatchObject({
        state: 'aborted',
        done: 500,
        why: 'ann may no longer act here',
      });
      expect(await statuses(engine)).toEqual({ failed: 100, running: 500 });
      const { bulk: rest } = await preview(ben, { verb: 'retry' });
      await ben.act('begin', { bulk: rest });
      expect(await workOff(ben, rest)).toMatchObject({ state: 'done', done: 100 });
    },
  );

  test('a bulk of a pipeline that somebody does not see is none to them', async ({ engine }) => {
    await engine.pipeline(stages);
    await deadLetters(engine, 1);
    const { bulk } = await preview(await signIn(engine, 'ann', {}), { verb: 'retry' });
    const other = await signIn(engine, 'ben', { pipelines: ['leads'] });
    for (const verb of ['begin', 'continue', 'abort']) {
      expect(await other.refused(verb, { bulk })).toMatchObject({
        code: 'MR003',
        message: `there is no bulk ${bulk} that you see`,
      });
    }
  });
});

test('a bulk that is aborted does no more, and says what it has done', async ({ engine }) => {
  await engine.pipeline(stages);
  await deadLetters(engine, 600);
  const operator = await signIn(engine, 'ann', {});
  const { bulk } = await preview(operator, { verb: 'retry' });
  await operator.act('begin', { bulk });
  await operator.act('continue', { bulk });
  expect(await operator.act('abort', { bulk, reason: 'wrong ones' })).toMatchObject({ state: 'aborted', done: 500 });
  expect(await operator.act('continue', { bulk })).toMatchObject({ state: 'aborted', done: 500 });
  expect(await operator.refused('abort', { bulk })).toMatchObject({ code: 'MR004' });
  await engine.sql.query('select millrace.sweep()');
  expect(await statuses(engine)).toEqual({ failed: 100, running: 500 });
});

test('two operators who begin, or work on, the same bulk at once do it once', async ({ engine }) => {
  await engine.pipeline(stages);
  await deadLetters(engine, 600);
  const [ann, ben] = [await signIn(engine, 'ann', {}), await signIn(engine, 'ben', {})];
  const { bulk } = await preview(ann, { verb: 'retry' });
  await ann.client.query('begin');
  await ann.act('begin', { bulk });
  const late = begin(ben.refused('begin', { bulk }));
  await untilBlocked(engine, ben.client);
  await ann.client.query('commit');
  expect(await late).toMatchObject({ code: 'MR004', message: `bulk ${bulk} cannot be begun: it is running` });
  await ann.client.query('begin');
  await ann.act('continue', { bulk });
  // The sweep waits for nobody.
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ bulks: 1 });
  await ann.client.query('commit');
  await workOff(ben, bulk);
  expect(await tries(engine)).toEqual([{ number: 2, runs: 600 }]);
});

test('two bulks over the same runs take no run twice', async ({ engine }) => {
  await engine.pipeline(stages);
  await deadLetters(engine, 30);
  const [ann, ben] = [await signIn(engine, 'ann', {}), await signIn(engine, 'ben', {})];
  const one = (await preview(ann, { verb: 'retry' })).bulk;
  const other = (await preview(ben, { verb: 'retry' })).bulk;
  await ann.act('begin', { bulk: one });
  await ben.act('begin', { bulk: other });
  expect(await workOff(ann, one)).toMatchObject({ done: 30 });
  expect(await workOff(ben, other)).toMatchObject({ done: 0, faults: 0 });
  expect(await tries(engine)).toEqual([{ number: 2, runs: 30 }]);
});

test('the sweep finishes what nobody continues, ten slices at a time', async ({ engine }) => {
  await engine.pipeline(stages);
  await deadLetters(engine, 1100);
  const operator = await signIn(engine, 'ann', {});
  const { bulk } = await preview(operator, { verb: 'retry' });
  await operator.act('begin', { bulk });
  await engine.sql.query('select millrace.sweep()');
  expect(await operator.ask('overview')).toMatchObject({ bulks: [{ bulk, done: 500, state: 'running' }] });
  await engine.sql.query('update millrace.bulks set slices = 9');
  await engine.sweepAll();
  expect(await engine.rows('select state, done from millrace.bulks')).toEqual([{ state: 'running', done: 1000 }]);
  await engine.sweepAll();
  expect(await engine.rows('select state, done from millrace.bulks')).toEqual([{ state: 'done', done: 1100 }]);
});

test('a bulk whose session is killed at any step has lost nothing, and takes no run twice', async ({ engine }) => {
  await engine.pipeline(stages);
  const ids = await deadLetters(engine, 700);
  // A session that writes a row waits for the test, which then kills them.
  await engine.sql.query(`
    create function public.hold_up() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock_shared(4711); return new; end $$;
    create trigger hold_up before update on public.items for each row
      when (old.id in (${ids[3]}, ${ids[650]})) execute function public.hold_up()`);
  const keeper = await engine.database.connect();
  const kill = async (verb: string, request: Row) => {
    const victim = await signIn(engine, 'ann');
    await keeper.query('select pg_advisory_lock(4711)');
    const lost = begin(victim.act(verb, request));
    await untilBlocked(engine, victim.client);
    const { processID } = victim.client as unknown as { processID: number };
    await keeper.query('select pg_terminate_backend($1, 5000)', [processID]);
    await expect(lost).rejects.toThrow();
    await keeper.query('select pg_advisory_unlock(4711)');
  };
  const operator = await signIn(engine, 'ann', {});
  const { bulk } = await preview(operator, { verb: 'retry' });
  await operator.act('begin', { bulk });
  expect(await operator.refused('begin', { bulk })).toMatchObject({ code: 'MR004' });
  await kill('continue', { bulk });
  expect(await engine.rows('select state, done from millrace.bulks')).toEqual([{ state: 'running', done: 0 }]);
  expect(await statuses(engine)).toEqual({ failed: 700 });
  expect(await operator.act('continue', { bulk })).toMatchObject({ done: 500 });
  await kill('continue', { bulk });
  expect(await statuses(engine)).toEqual({ failed: 200, running: 500 });
  expect(await workOff(operator, bulk)).toMatchObject({ state: 'done', done: 700, faults: 0 });
  expect(await tries(engine)).toEqual([{ number: 2, runs: 700 }]);
});

test('a faulty bulk is refused with its field named, and nothing is done', async ({ engine }) => {
  await engine.pipeline(stages);
  const operator = await signIn(engine, 'ann', {});
  const flow = { pipeline: 'flow' };
  const cases: [Row, string][] = [
    [{}, 'do is missing, but preview needs it'],
    [{ do: { verb: 'retry' } }, 'filter is missing, but preview needs it'],
    [{ do: { verb: 'pause' }, filter: flow }, 'do.verb is "pause", but must be one of'],
    [{ do: { verb: 'retry', x: 1 }, filter: flow }, 'do.x is not known'],
    [{ do: { verb: 'skip' }, filter: flow }, 'stage is missing, but skip needs it'],
    [{ do: { verb: 'retry' }, filter: {} }, 'pipeline is missing, but a bulk needs it'],
    [{ do: { verb: 'reset' }, filter: flow }, 'status is missing, but reset needs it'],
    [{ do: { verb: 'retry' }, filter: { ...flow, pipeline_ids: [1] } }, 'filter.pipeline_ids is not known'],
    [{ do: { verb: 'retry' }, filter: { ...flow, status: 'x' } }, 'filter.status is "x", but must be one of'],
    [{ do: { verb: 'retry' }, filter: { ...flow, before: 'yesterday' } }, 'filter.before is "yesterday", but must be'],
    [{ do: { verb: 'retry' }, filter: { ...flow, before: '2026-13-41' } }, 'before is "2026-13-41", but must be'],
    [{ do: { verb: 'retry' }, filter: { ...flow, stage: 'none' } }, 'there is no stage none in a pipeline flow'],
  ];
  for (const [request, message] of cases) {
    expect(await operator.refused('preview', request)).toMatchObject({
      code: expect.stringMatching(/^MR00[23]$/),
      message: expect.stringContaining(message),
    });
  }
  expect(await operator.refused('begin', { bulk: 99 })).toMatchObject({ code: 'MR003' });
  expect(await engine.rows('select from millrace.bulks')).toEqual([]);
});
