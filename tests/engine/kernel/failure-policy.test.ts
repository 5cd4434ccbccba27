import { expect } from 'vitest';
import { type Engine, type StageDefinition, test } from '../../support/engine.ts';
import { diamond, jobEnd } from '../../support/sessions.ts';
import { completed, failed, resume, runStage, Worker, waiting } from '../../support/worker.ts';

/** scan → label (the run goes on without it) → print. */
const lenient: StageDefinition[] = [
  { name: 'scan' },
  { name: 'label', needs: ['scan'], on_failure: 'continue', retry: { max_attempts: 2 } },
  { name: 'print', needs: ['label'] },
];

/** Fails the one due attempt of a stage. */
async function failStage(engine: Engine, stage: string, permanent = true): Promise<void> {
  const worker = await Worker.of(engine, stage);
  expect(await worker.report(failed(await worker.takeOne(), { permanent }))).toEqual(['accepted']);
  await worker.leave();
}

async function toLabel(engine: Engine, stages = lenient): Promise<string> {
  await engine.pipeline(stages);
  const [id] = await engine.queued('scan');
  await runStage(engine, 'scan');
  return id as string;
}

test('continue: the stage is retried first, and the run goes on when its attempts are used up', async ({ engine }) => {
  const id = await toLabel(engine);
  await failStage(engine, 'label', false);
  expect(await engine.statuses(id)).toEqual({ scan: 'completed', label: 'queued', print: 'pending' });
  await engine.advance('1 minute');
  await failStage(engine, 'label', false);
  expect(await engine.attempts(id)).toEqual([
    'scan 1 completed',
    'label 1 failed',
    'label 2 failed',
    'label 3 skipped',
    'print 1 queued',
  ]);
  expect((await engine.run(id)).status).toBe('running');
  await runStage(engine, 'print');
  expect((await engine.run(id)).status).toBe('completed');
});

test('continue: a permanent failure goes on at once; the failure stays, and a skipped attempt follows it', async ({
  engine,
}) => {
  const id = await toLabel(engine);
  await engine.configureWakeUps();
  await failStage(engine, 'label');
  const timeline = `select t.stage, t.state, t.error_code, t.error_message, t.parent_id = p.id as follows
    from millrace.timeline($1) t left join millrace.attempts p on p.id = t.parent_id order by t.attempt_id`;
  expect(await engine.rows(timeline, [(await engine.run(id)).id])).toEqual([
    { stage: 'scan', state: 'completed', error_code: null, error_message: null, follows: null },
    { stage: 'label', state: 'failed', error_code: 'timeout', error_message: 'it took too long', follows: null },
    {
      stage: 'label',
      state: 'skipped',
      error_code: 'failed',
      error_message: expect.stringContaining('goes on without it'),
      follows: true,
    },
    { stage: 'print', state: 'queued', error_code: null, error_message: null, follows: null },
  ]);
});

test('continue: the columns show the failure, and those that need the stage see null', async ({ engine }) => {
  const id = await toLabel(engine);
  await failStage(engine, 'label');
  expect(await engine.item(id)).toMatchObject({
    label_status: 'failed',
    label_error: 'it took too long',
    print_status: 'queued',
  });
  expect((await (await Worker.of(engine, 'print')).takeOne()).needs).toEqual({ label: null });
});

test('continue: the worker of a stage that is gone on without hears what to wake', async ({ engine }) => {
  await toLabel(engine);
  const worker = await Worker.of(engine, 'label');
  const { wake } = await worker.complete([failed(await worker.takeOne(), { permanent: true })]);
  expect(wake).toMatchObject([{ pipeline: 'flow', stage: 'print' }]);
});

test('continue: the last stage of a run may fail, and the run is completed', async ({ engine }) => {
  const id = await toLabel(engine, lenient.slice(0, 2));
  await failStage(engine, 'label');
  expect((await engine.run(id)).status).toBe('completed');
});

test('continue: branches beside it are not touched, and their join runs once', async ({ engine }) => {
  const [first, left, right, last] = diamond() as [StageDefinition, StageDefinition, StageDefinition, StageDefinition];
  await engine.pipeline([first, { ...left, on_failure: 'continue' }, { ...right, on_failure: 'continue' }, last]);
  const [one, two] = await engine.queued('first', 2);
  await runStage(engine, 'first');
  const workers = [await Worker.of(engine, 'left'), await Worker.of(engine, 'right')] as const;
  const [lefts, rights] = [await workers[0].take(), await workers[1].take()];
  await workers[0].complete([failed(lefts[0] as never, { permanent: true }), completed(lefts[1] as never)]);
  expect(await engine.statuses(one)).toMatchObject({ left: 'failed', right: 'started', last: 'pending' });
  await workers[1].complete(rights.map((item) => failed(item, { permanent: true })));
  expect(await engine.statuses(one)).toMatchObject({ left: 'failed', right: 'failed', last: 'queued' });
  expect(await engine.statuses(two)).toMatchObject({ left: 'completed', right: 'failed', last: 'queued' });
  await runStage(engine, 'last');
  expect([(await engine.run(one)).status, (await engine.run(two)).status]).toEqual(['completed', 'completed']);
});

test('fail_run, the default, ends the run and cancels what is beside', async ({ engine }) => {
  const [first, left, right, last] = diamond() as [StageDefinition, StageDefinition, StageDefinition, StageDefinition];
  await engine.pipeline([first, left, { ...right, on_failure: 'continue' }, last]);
  const [id] = await engine.queued('first');
  await runStage(engine, 'first');
  await failStage(engine, 'left');
  expect(await engine.attempts(id)).toEqual(['first 1 completed', 'left 1 failed', 'right 1 cancelled']);
  expect((await engine.run(id)).status).toBe('failed');
});

test('continue: a lost lease and a deadline that use up the attempts go on as well', async ({ engine }) => {
  const once = { on_failure: 'continue', retry: { max_attempts: 1 } };
  await engine.pipeline([
    { name: 'scan', ...once },
    { name: 'label', needs: ['scan'], kind: 'external', completion: { callback: true, deadline_seconds: 60 }, ...once },
    { name: 'print', needs: ['label'] },
  ]);
  const [id] = await engine.queued('scan');
  await (await Worker.of(engine, 'scan')).takeOne();
  await engine.advance('2 minutes');
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.statuses(id)).toEqual({ scan: 'failed', label: 'queued', print: 'pending' });
  const worker = await Worker.of(engine, 'label');
  const item = await worker.takeOne();
  await worker.complete([waiting(item, 'job-1')]);
  await engine.advance('2 minutes');
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.statuses(id)).toEqual({ scan: 'failed', label: 'failed', print: 'queued' });
  const late = await resume(engine, [jobEnd(item, 'job-1')]);
  expect(late.items).toMatchObject([{ verdict: 'stale' }]);
});

test('continue: the condition after it reads null', async ({ engine }) => {
  const stages = [...lenient.slice(0, 2), { name: 'print', needs: ['label'], when: '$.needs.label == null' }];
  const id = await toLabel(engine, stages as StageDefinition[]);
  await failStage(engine, 'label');
  expect(await engine.statuses(id)).toMatchObject({ print: 'queued' });
});

test('a stage that the run went on without is no dead letter, and the retry of the run leaves it alone', async ({
  engine,
}) => {
  const id = await toLabel(engine);
  await failStage(engine, 'label');
  const dead = 'select stage from millrace.dead_letters';
  expect(await engine.rows(dead)).toEqual([]);
  expect(await engine.refusal('select millrace.retry($1)', [(await engine.run(id)).id])).toMatchObject({
    code: 'MR004',
  });
  await failStage(engine, 'print');
  expect(await engine.rows(dead)).toEqual([{ stage: 'print' }]);
  expect(await engine.rows('select millrace.retry(run_id) from millrace.dead_letters where can_retry')).toHaveLength(1);
  expect(await engine.attempts(id)).toEqual([
    'scan 1 completed',
    'label 1 failed',
    'label 2 skipped',
    'print 1 failed',
    'print 2 queued',
  ]);
});

test('a stage that the run went on without can be queued again, and what follows starts over', async ({ engine }) => {
  const id = await toLabel(engine);
  await failStage(engine, 'label');
  await engine.queue('label', [id]);
  expect(await engine.attempts(id)).toEqual([
    'scan 1 completed',
    'label 1 failed superseded',
    'label 2 skipped superseded',
    'print 1 cancelled superseded',
    'label 3 queued',
  ]);
  await runStage(engine, 'label');
  await runStage(engine, 'print');
  expect((await engine.run(id)).status).toBe('completed');
});

test('a later run takes over that a stage was gone on without', async ({ engine }) => {
  const id = await toLabel(engine);
  await failStage(engine, 'label');
  await runStage(engine, 'print');
  await engine.queue('print', [id]);
  const taken = (await engine.attempts(id)).slice(-3, -1).sort();
  expect(taken).toEqual(['label 1 skipped', 'scan 1 completed']);
  expect((await engine.attempts(id)).at(-1)).toBe('print 1 queued');
});

test('whether a run goes on is a setting of today', async ({ engine }) => {
  const definition = await engine.pipeline(lenient.map(({ on_failure: _, ...stage }) => stage));
  const [id] = await engine.queued('scan');
  await runStage(engine, 'scan');
  expect(await engine.define({ ...definition, stages: lenient })).toBe(1);
  await failStage(engine, 'label');
  expect(await engine.statuses(id)).toMatchObject({ print: 'queued' });
});

test("a user's trigger that starts the stage over when it shows as failed has its way", async ({ engine }) => {
  const id = await toLabel(engine);
  await engine.sql.query(`
    create function public.again() returns trigger language plpgsql as $$
    begin update public.items set label_status = 'queued' where id = new.id; return null; end $$;
    create trigger again after update on public.items for each row when (old.label_status <> 'failed' and new.label_status = 'failed' and new.label = 'item 1')
    execute function public.again()`);
  await failStage(engine, 'label');
  expect(await engine.attempts(id)).toEqual(['scan 1 completed', 'label 1 failed superseded', 'label 2 queued']);
});

test('an unknown failure policy is refused with the remedy', async ({ engine }) => {
  await expect(engine.pipeline([{ name: 'scan', on_failure: 'ignore' }])).rejects.toThrow(
    'stages.scan.onFailure is "ignore", but must be fail_run or continue. fail_run ends the run, continue goes on without',
  );
});
