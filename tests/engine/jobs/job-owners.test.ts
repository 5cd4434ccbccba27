import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { type Engine, type Row, test } from '../../support/engine.ts';
import { jobEnd } from '../../support/sessions.ts';
import { type Claimed, failed, resume, runStage, Worker, waiting } from '../../support/worker.ts';

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
  (await engine.rows(`select ok, detail from millrace.doctor() where what = 'no errors in the last hour'`))[0];
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

test('a fault that keeps a job from being finished stands in the log and in doctor(), the first of each minute', async ({
  engine,
}) => {
  const { batch } = await underWay(engine);
  const [item] = batch as [Claimed];
  expect(await note(engine, fault(item), fault(item, { submission: null, message: 'another' }))).toEqual({ noted: 2 });
  const message = 'A job of service scraper cannot be finished: SCRAPER_URL is not set';
  expect(
    await engine.rows(`select message, detail ->> 'job_id' as job from millrace.log where code = 'job_fault'`),
  ).toEqual([{ message, job: 'job-1' }]);
  expect(await doctorLine(engine)).toMatchObject({ ok: false, detail: expect.stringContaining(message) });
  expect(await engine.value('select error from millrace.attempts')).toBeNull();
});

test('faults that are no list are refused', async ({ engine }) => {
  const client = await engine.database.connect('service_role');
  const refusal = await engine.refusal(`select public.millrace_note_faults('{}')`, [], client);
  expect(refusal).toMatchObject({ code: 'MR002' });
});

test('all attempts of a stage run have its key, however they ended; a reset begins another stage run', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'first' }, { name: 'second', needs: ['first'], retry: atOnce }]);
  const [id] = await engine.queued('first');
  await runStage(engine, 'first');
  const worker = await Worker.of(engine, 'second');
  const execution = async () => {
    const item = (await worker.takeOne()) as Claimed & { stage_run: number };
    await worker.report(failed(item));
    return item.stage_run;
  };
  const first = await execution();
  expect([await execution(), await execution()]).toEqual([first, first]);

  const { id: run } = await engine.run(id);
  await engine.value('select millrace.retry($1)', [run]);
  expect(await execution()).toBe(first);
  await engine.value(`select millrace.reset($1, 'second')`, [run]);
  expect(await execution()).toBeGreaterThan(first);
});
