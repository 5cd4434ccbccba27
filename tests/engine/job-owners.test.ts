import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { type Engine, type Row, test } from '../support/engine.ts';
import { jobEnd } from '../support/sessions.ts';
import { type Claimed, failed, resume, runStage, Worker, waiting } from '../support/worker.ts';

const atOnce = { max_attempts: 3, backoff: { kind: 'list', seconds: [0] } };
const completion = { callback: true, poll_seconds: 5, deadline_seconds: 600 };

/** Items that wait for job-1, job-2 and so on, in their order. */
async function underWay(engine: Engine, count = 1): Promise<{ worker: Worker; batch: Claimed[] }> {
  await engine.pipeline([{ name: 'only', kind: 'external', function: 'flow-only', completion, retry: atOnce }]);
  await engine.queued('only', count);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take(count);
  await worker.report(...batch.map((item, place) => waiting(item, `job-${place + 1}`)));
  return { worker, batch };
}

const call = async <T>(engine: Engine, name: string, argument: unknown): Promise<T> => {
  const client = await engine.database.connect('service_role');
  const { rows } = await client.query(`select public.${name}($1) as answer`, [JSON.stringify(argument)]);
  engine.database.giveBack(client);
  return rows[0].answer;
};
const owner = (engine: Engine, job: Row) => call<Row | null>(engine, 'millrace_job_owner', job);
const note = (engine: Engine, ...faults: Row[]) => call<{ noted: number }>(engine, 'millrace_note_faults', faults);
const fault = (item: Claimed, changes: Row = {}): Row => ({
  submission: item.submission,
  service: 'scraper',
  job_id: 'job-1',
  code: 'misconfigured',
  message: 'SCRAPER_URL is not set',
  ...changes,
});
const doctorLine = async (engine: Engine) =>
  (await engine.rows(`select ok, detail from millrace.doctor() where what ~ '^jobs at services'`))[0];
const origin = (item: Claimed) => {
  const { submission, trace_id, entity_id } = item;
  return { pipeline: 'flow', stage: 'only', submission, trace_id, entity_id };
};

test('a job is that of the attempt that waits for it, by its id alone', async ({ engine }) => {
  const { batch } = await underWay(engine, 2);
  const second = { ...origin(batch[1] as Claimed), service: 'scraper', function: 'flow-only', ended: false };
  expect(await owner(engine, { job_id: 'job-2' })).toEqual(second);
  expect(await owner(engine, { job_id: 'job-3' })).toBeNull();
});

test('a job that two attempts wait for is nobody’s, and the other’s once one has ended', async ({ engine }) => {
  const { worker, batch } = await underWay(engine);
  await engine.queued('only');
  await worker.report(waiting(await worker.takeOne(), 'job-1', 'ocr'));
  expect(await owner(engine, { job_id: 'job-1' })).toBeNull();
  await resume(engine, [jobEnd(batch[0] as Claimed, 'job-1')]);
  expect(await owner(engine, { job_id: 'job-1' })).toMatchObject({ service: 'ocr', ended: false });
});

test('a job that is over is known as ended, so that its service need not send it again', async ({ engine }) => {
  const { batch } = await underWay(engine);
  await resume(engine, [jobEnd(batch[0] as Claimed, 'job-1')]);
  expect(await owner(engine, { job_id: 'job-1' })).toMatchObject({ service: 'scraper', ended: true });
});

test('an id that a service gives once more, long after, is that of the attempt that waits', async ({ engine }) => {
  const { worker, batch } = await underWay(engine);
  const error = { code: 'http_404', message: 'gone', permanent: true };
  await resume(engine, [jobEnd(batch[0] as Claimed, 'job-1', { outcome: 'failed', error })]);
  await engine.queued('only');
  const again = await worker.takeOne();
  await worker.report(waiting(again, 'job-1'));
  expect(await owner(engine, { job_id: 'job-1' })).toMatchObject({ submission: again.submission, ended: false });
});

test('an id may be longer than an index entry', async ({ engine }) => {
  const { worker } = await underWay(engine);
  await engine.queued('only', 2);
  const [long, short] = (await worker.take(2)) as [Claimed, Claimed];
  const token = randomBytes(3_000).toString('base64');
  expect(await worker.report(waiting(long, token), waiting(short, 'short'))).toEqual(['accepted', 'accepted']);
  expect(await owner(engine, { job_id: token })).toMatchObject({ submission: long.submission });
});

test('a job whose metadata came back is that of the stage it names, where there is one with a function', async ({
  engine,
}) => {
  const { batch } = await underWay(engine);
  const named = origin(batch[0] as Claimed);
  expect(await owner(engine, { ...named, service: 'scraper' })).toEqual({
    ...named,
    service: 'scraper',
    function: 'flow-only',
  });
  expect(await owner(engine, { ...named, stage: 'other' })).toBeNull();
  expect(await owner(engine, { ...named, pipeline: 'other' })).toBeNull();
});

test('a question that names no job is refused', async ({ engine }) => {
  const client = await engine.database.connect('service_role');
  const refusal = await engine.refusal(`select public.millrace_job_owner('{"submission": 1}')`, [], client);
  expect(refusal).toMatchObject({ code: 'MR002', hint: expect.stringContaining('{job_id}') });
});

test('what keeps a job from being finished stands in the timeline, the log and doctor() until it is over', async ({
  engine,
}) => {
  const { batch } = await underWay(engine);
  const [item] = batch as [Claimed];
  expect(await doctorLine(engine)).toEqual({ ok: true, detail: 'none is in trouble' });

  expect(await note(engine, fault(item))).toEqual({ noted: 1 });
  expect(await engine.rows('select error_code, error_message from millrace.timeline($1)', [item.run])).toEqual([
    { error_code: 'misconfigured', error_message: 'SCRAPER_URL is not set' },
  ]);
  expect(await doctorLine(engine)).toMatchObject({
    ok: false,
    detail: expect.stringMatching(/^1 of stage only of flow since 2026-11-02 .*: SCRAPER_URL is not set$/),
  });
  expect(await engine.value(`select message from millrace.log where code = 'job_fault'`)).toContain('SCRAPER_URL');

  // The same once more writes nothing: it stands there since its first time.
  await engine.advance('5 minutes');
  expect(await note(engine, fault(item))).toEqual({ noted: 0 });
  expect(await note(engine, fault(item, { code: null, message: null }))).toEqual({ noted: 1 });
  expect(await doctorLine(engine)).toMatchObject({ ok: true });
});

test('a fault of another job, or of an attempt that waits no more, leaves attempts alone', async ({ engine }) => {
  const { batch } = await underWay(engine);
  const [item] = batch as [Claimed];
  expect(await note(engine, fault(item, { job_id: 'job-9' }), fault(item, { service: 'ocr' }))).toEqual({ noted: 0 });
  await note(engine, fault(item));
  await resume(engine, [jobEnd(item, 'job-1')]);
  expect(await note(engine, fault(item))).toEqual({ noted: 0 });
  expect(await engine.value('select error from millrace.attempts')).toBeNull();
});

test('faults of one code count as one in doctor(), whatever each message names', async ({ engine }) => {
  const { batch } = await underWay(engine, 2);
  const [one, two] = batch as [Claimed, Claimed];
  await note(
    engine,
    fault(one, { message: 'job-1 is away' }),
    fault(two, { job_id: 'job-2', message: 'job-2 is away' }),
  );
  expect((await doctorLine(engine))?.detail).toMatch(/^2 of stage only of flow since .*: job-1 is away$/);
});

test('a fault that names no attempt is told in the log alone, and what is no list is refused', async ({ engine }) => {
  const { batch } = await underWay(engine);
  const [item] = batch as [Claimed];
  const malformed = [fault(item, { submission: 1e30 }), fault(item, { submission: null }), fault(item)];
  expect(await note(engine, ...malformed)).toEqual({ noted: 1 });
  const client = await engine.database.connect('service_role');
  const refusal = await engine.refusal(`select public.millrace_note_faults('{}')`, [], client);
  expect(refusal).toMatchObject({ code: 'MR002' });
});

test('a fault of a row that somebody holds waits for nobody', async ({ engine }) => {
  const { batch } = await underWay(engine);
  const [item] = batch as [Claimed];
  const holder = await engine.database.connect();
  await holder.query('begin');
  await holder.query('select from millrace.attempts for update');
  expect(await note(engine, fault(item))).toEqual({ noted: 0 });
  await holder.query('rollback');
});

test('all attempts of one execution carry its key, whatever became of them; a reset begins another', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'first' }, { name: 'second', needs: ['first'], retry: atOnce }]);
  const [id] = await engine.queued('first');
  await runStage(engine, 'first');
  const worker = await Worker.of(engine, 'second');
  const execution = async () => {
    const item = (await worker.takeOne()) as Claimed & { execution: number };
    await worker.report(failed(item));
    return item.execution;
  };
  const first = await execution();
  expect([await execution(), await execution()]).toEqual([first, first]);

  const { id: run } = await engine.run(id);
  await engine.value('select millrace.retry($1)', [run]);
  expect(await execution()).toBe(first);
  await engine.value(`select millrace.reset($1, 'second')`, [run]);
  expect(await execution()).toBeGreaterThan(first);
});
