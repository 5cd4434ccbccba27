// A result may have as many keys as its bytes allow; apply.test.ts has those of handlers.
import { expect } from 'vitest';
import { chain, test } from '../../support/engine.ts';
import { resume, Worker, waiting } from '../../support/worker.ts';

/** 88,000 keys, of a megabyte. */
const wide = Object.fromEntries(Array.from({ length: 88_000 }, (_, place) => [`k${place}`, 0]));
test('a wide result of a job, and of a child run, is recorded in the time of a call', async ({ engine }) => {
  const options = { result_limit_bytes: 2_000_000 };
  await engine.pipeline(chain(['find'], { kind: 'external', completion: { callback: true }, ...options }), {}, 'index');
  await engine.pipeline([{ name: 'contents', kind: 'pipeline', child: { pipeline: 'index' }, ...options }]);
  const [id] = await engine.queued('contents');
  await engine.sql.query(`set statement_timeout = '8s'`);
  const worker = await Worker.of(engine, 'find', 'index');
  const held = await worker.takeOne();
  await worker.report(waiting(held, 'a'));
  engine.database.giveBack(worker.client);
  const end = { submission: held.submission, service: 'scraper', job_id: 'a', outcome: 'completed', result: wide };
  expect((await resume(engine, [end])).items).toMatchObject([{ verdict: 'accepted' }]);
  await engine.sweepAll();
  expect(await engine.statuses(id)).toMatchObject({ find: 'completed', contents: 'completed' });
});
