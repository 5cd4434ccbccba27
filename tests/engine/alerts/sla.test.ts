import { describe, expect } from 'vitest';
import { collectChildren, endFiles, waitingFolder } from '../../support/engine/children.ts';
import { toReview } from '../../support/engine/decisions.ts';
import { chain, type Engine, type Row, type StageDefinition, findingsTest as test } from '../../support/engine.ts';
import { completed, failed, released, runStage, Worker, waiting } from '../../support/worker.ts';

const bound = { sla_seconds: 600 };
const retry = { max_attempts: 5, backoff: { kind: 'list', seconds: [60] } };

const sweep = (engine: Engine) => engine.value<object>('select millrace.sweep()');
const lateRuns = (engine: Engine) => engine.rows<Row>('select * from millrace.late_runs');
const lateAt = async (engine: Engine) => (await lateRuns(engine)).map(({ stage }) => stage);
const late = (engine: Engine, stage = 'only') =>
  engine.value<number>('select sum(late)::int from millrace.stage_health where stage = $1', [stage]);

/** Defines `flow` with one stage that has a bound of ten minutes, and queues items at it. */
async function bounded(engine: Engine, count = 1, more: Row = {}): Promise<string[]> {
  await engine.pipeline([{ name: 'only', ...bound, ...more }]);
  return engine.queued('only', count);
}

/** Claims one attempt of a stage and reports this outcome. */
async function report(engine: Engine, outcome: (item: { attempt: number; token: string }) => Row): Promise<void> {
  const worker = await Worker.of(engine, 'only');
  expect(await worker.report(outcome(await worker.takeOne()))).toEqual(['accepted']);
  await worker.leave();
}

test('a run past the bound of its stage is late at once, and told with what it is and since when', async ({
  engine,
}) => {
  const [id] = await bounded(engine);
  const { id: run_id } = await engine.run(id);
  await engine.advance('9 minutes 59 seconds');
  expect(await late(engine)).toBe(0);
  expect(await lateRuns(engine)).toEqual([]);
  await engine.advance('1 second');
  const late_at = await engine.now();
  await engine.advance('2 minutes');
  await sweep(engine);
  expect(await late(engine)).toBe(1);
  expect(await lateRuns(engine)).toMatchObject([
    { pipeline: 'flow', stage: 'only', run_id, entity_id: id, state: 'queued', late_at },
  ]);
});

test('the time of a stage ends when it is done, and the next stage has a bound of its own', async ({ engine }) => {
  await engine.pipeline(chain(['only', 'next'], bound));
  await engine.queued('only', 2);
  await engine.advance('11 minutes');
  expect(await lateAt(engine)).toEqual(['only', 'only']);
  await report(engine, completed);
  expect([await late(engine), await late(engine, 'next')]).toEqual([1, 0]);
  await runStage(engine, 'only');
  await engine.advance('599 seconds');
  expect(await lateAt(engine)).toEqual([]);
  await engine.advance('1 second');
  expect(await lateAt(engine)).toEqual(['next', 'next']);
  await runStage(engine, 'next');
  await engine.advance('1 hour');
  expect(await lateAt(engine)).toEqual([]);
});

test('a bound that a definition changes holds for what becomes ready from then on', async ({ engine }) => {
  await bounded(engine);
  await engine.pipeline([{ name: 'only', sla_seconds: 60 }]);
  const [later] = await engine.queued('only');
  await engine.advance('1 minute');
  expect(await lateRuns(engine)).toMatchObject([{ entity_id: later }]);
});

test('a stage without a bound is never late', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only');
  await engine.advance('300 days');
  expect(await late(engine)).toBe(0);
});

describe('the time of a stage goes on', () => {
  test('over its retries', async ({ engine }) => {
    await bounded(engine, 1, { retry });
    await engine.advance('8 minutes');
    await report(engine, failed);
    expect(await lateRuns(engine)).toHaveLength(0);
    await engine.advance('2 minutes');
    expect(await lateRuns(engine)).toHaveLength(1);
    await report(engine, failed);
    await engine.advance('1 hour');
    expect(await late(engine)).toBe(1);
    await report(engine, completed);
    expect(await lateRuns(engine)).toHaveLength(0);
  });

  test('while its attempt is retried after a lost lease', async ({ engine }) => {
    await bounded(engine, 1, { retry });
    await (await Worker.of(engine, 'only')).takeOne();
    await engine.advance('10 minutes');
    expect(await sweep(engine)).toMatchObject({ leases: 1 });
    expect(await lateRuns(engine)).toMatchObject([{ state: 'queued' }]);
  });

  test('when its worker hands it back', async ({ engine }) => {
    await bounded(engine);
    await engine.advance('9 minutes');
    await report(engine, released);
    await engine.advance('1 minute');
    expect(await lateRuns(engine)).toHaveLength(1);
  });

  test('while an external job is under way', async ({ engine }) => {
    await bounded(engine, 1, { kind: 'external', completion: { callback: true, deadline_seconds: 86_400 } });
    await report(engine, (item) => waiting(item, 'job-1'));
    await engine.advance('10 minutes');
    expect(await lateRuns(engine)).toHaveLength(1);
  });

  test('while children run', async ({ engine }) => {
    const { fanOut } = await waitingFolder(engine, 2, { split: bound });
    await engine.advance('10 minutes');
    expect(await lateRuns(engine)).toHaveLength(1);
    await endFiles(engine);
    await collectChildren(engine, [fanOut]);
    expect(await lateRuns(engine)).toHaveLength(0);
  });

  test('while a child run is under way, and anew when a person retries it', async ({ engine }) => {
    await engine.pipeline([{ name: 'inner' }], {}, 'inside');
    await engine.pipeline([{ name: 'only', kind: 'pipeline', child: { pipeline: 'inside' }, ...bound }]);
    await engine.queued('only');
    await engine.advance('10 minutes');
    expect(await lateRuns(engine)).toHaveLength(1);
    const parent = await engine.value(
      `select r.id from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id where p.name = 'flow'`,
    );
    await engine.rows('select millrace.cancel($1)', [parent]);
    expect(await lateRuns(engine)).toHaveLength(0);
    await engine.rows('select millrace.retry($1)', [parent]);
    await engine.advance('599 seconds');
    expect(await lateRuns(engine)).toHaveLength(0);
    await engine.advance('1 second');
    expect(await lateRuns(engine)).toHaveLength(1);
  });

  test('while a person is asked', async ({ engine }) => {
    await toReview(engine, 1, bound);
    await engine.advance('10 minutes');
    expect(await lateRuns(engine)).toHaveLength(1);
    expect(await late(engine, 'review')).toBe(1);
  });

  test('while the stage is paused', async ({ engine }) => {
    await bounded(engine);
    await engine.rows(`select millrace.pause('flow')`);
    await engine.advance('10 minutes');
    expect(await lateRuns(engine)).toHaveLength(1);
  });
});

describe('it begins', () => {
  test('when the stage is ready, not with the run: after its needs, its condition and its threshold', async ({
    engine,
  }) => {
    const held: StageDefinition[] = [
      { name: 'first' },
      { name: 'only', needs: ['first'], when: '$.entity.label != "none"', ...bound },
    ];
    await engine.pipeline(held);
    await engine.queued('first');
    await engine.advance('1 hour');
    await runStage(engine, 'first');
    await engine.advance('599 seconds');
    expect(await lateRuns(engine)).toHaveLength(0);
    await engine.advance('1 second');
    expect(await lateRuns(engine)).toHaveLength(1);
  });

  test('anew when the stage starts over', async ({ engine }) => {
    const [id] = await bounded(engine);
    await engine.advance('10 minutes');
    await (await Worker.of(engine, 'only')).takeOne();
    expect(await late(engine)).toBe(1);
    await engine.queue('only', [id as string]);
    expect(await late(engine)).toBe(0);
    await engine.advance('10 minutes');
    expect(await lateRuns(engine)).toHaveLength(1);
  });

  test('anew when a person retries a dead letter', async ({ engine }) => {
    const [id] = await bounded(engine);
    await engine.advance('10 minutes');
    await report(engine, (item) => failed(item, { permanent: true }));
    await engine.rows('select millrace.retry($1)', [(await engine.run(id)).id]);
    expect(await lateRuns(engine)).toHaveLength(0);
    await engine.advance('10 minutes');
    expect(await lateRuns(engine)).toHaveLength(1);
  });
});

test('a run that is cancelled, or whose row is deleted, is late no more', async ({ engine }) => {
  const [cancelled, deleted] = await bounded(engine, 2);
  await engine.advance('10 minutes');
  expect(await late(engine)).toBe(2);
  await engine.rows('select millrace.cancel($1)', [(await engine.run(cancelled)).id]);
  expect(await late(engine)).toBe(1);
  await engine.rows('delete from public.items where id = $1', [deleted]);
  expect(await lateRuns(engine)).toEqual([]);
});

test('the late runs of a stage are counted to ten thousand', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', max_workers: 10, ...bound }], { projection: 'none' });
  await engine.insert(5000);
  await engine.rows(`select millrace.queue_stage(s.pipeline_id, s.id, array(select i.id::text from public.items i), '{}')
    from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id where p.name = 'flow'`);
  await engine.advance('10 minutes');
  expect(await late(engine)).toBe(5000);
});
