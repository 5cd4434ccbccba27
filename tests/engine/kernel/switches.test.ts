import { expect } from 'vitest';
import { chain, type Engine, test } from '../../support/engine.ts';
import { jobEnd, wokenStages } from '../../support/sessions.ts';
import { completed, resume, runStage, Worker, waiting } from '../../support/worker.ts';

const setStage = (engine: Engine, name: string, enabled: boolean) =>
  engine.sql.query(
    `update millrace.stages set enabled = $2 where name = $1
     and pipeline_id = (select id from millrace.pipelines where name = 'flow')`,
    [name, enabled],
  );
const setPipeline = (engine: Engine, enabled: boolean) =>
  engine.sql.query(`update millrace.pipelines set enabled = $1 where name = 'flow'`, [enabled]);

test('a stage that is switched off takes in work, and neither wakes nor hands any out', async ({ engine }) => {
  await engine.configureWakeUps();
  await engine.pipeline(chain(['first', 'second']));
  await setStage(engine, 'first', false);
  const [id] = await engine.queued('first');
  expect((await engine.item(id)).first_status).toBe('queued');
  const worker = await Worker.of(engine, 'first');
  expect(await worker.claim()).toMatchObject({
    status: 'refused',
    reason: 'the stage or its pipeline is switched off',
    batch: [],
  });
  expect(await worker.leave()).toMatchObject({ left: true });
  await engine.advance('1 minute');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 0 });
  expect(await wokenStages(engine)).toEqual([]);
});

test('a stage that is switched on again is woken by the next sweep', async ({ engine }) => {
  await engine.configureWakeUps();
  await engine.pipeline([{ name: 'only' }]);
  await setStage(engine, 'only', false);
  await engine.queued('only');
  await setStage(engine, 'only', true);
  await engine.sql.query('select millrace.sweep()');
  expect(await wokenStages(engine)).toEqual(['flow.only']);
  expect(await runStage(engine, 'only')).toHaveLength(1);
});

test('a pipeline that is switched off pauses all of its stages and no other pipeline', async ({ engine }) => {
  await engine.configureWakeUps();
  await engine.pipeline([{ name: 'only' }]);
  await engine.pipeline([{ name: 'also' }], {}, 'other');
  await setPipeline(engine, false);
  const [id] = await engine.insert();
  await engine.sql.query(`update public.items set only_status = 'queued', also_status = 'queued' where id = $1`, [id]);
  expect(await (await Worker.of(engine, 'only')).claim()).toMatchObject({ status: 'refused' });
  expect(await (await Worker.of(engine, 'also', 'other')).claim()).toMatchObject({ status: 'working' });
  await engine.advance('1 minute');
  await engine.sql.query('select millrace.sweep()');
  expect(new Set(await wokenStages(engine))).toEqual(new Set(['other.also']));
});

test('an attempt in work when its stage is switched off is still recorded, and its worker leaves', async ({
  engine,
}) => {
  await engine.pipeline(chain(['first', 'second']));
  const [id] = await engine.queued('first', 3);
  const worker = await Worker.of(engine, 'first');
  const item = await worker.takeOne();
  await setStage(engine, 'first', false);
  const answer = await worker.complete([completed(item)], 10);
  expect(answer).toMatchObject({ status: 'refused', batch: [], items: [{ verdict: 'accepted' }] });
  expect(await engine.attempts(id)).toEqual(['first 1 completed', 'second 1 queued']);
  expect(await worker.leave()).toMatchObject({ left: true });
});

test('a completion names no follower to wake that is switched off', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  await engine.queued('first');
  await setStage(engine, 'second', false);
  const worker = await Worker.of(engine, 'first');
  expect((await worker.complete([completed(await worker.takeOne())])).wake).toEqual([]);
});

test('a job under way when its stage was switched off still ends', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', kind: 'external', completion: { callback: true } }]);
  const [id] = await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await worker.report(waiting(item, 'job-1'));
  await setStage(engine, 'only', false);
  expect((await resume(engine, [jobEnd(item, 'job-1')])).items).toMatchObject([{ verdict: 'accepted' }]);
  expect((await engine.run(id)).status).toBe('completed');
});

test('a lease that expires at a stage switched off is swept all the same', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const [id] = await engine.queued('only');
  await (await Worker.of(engine, 'only')).takeOne();
  await setStage(engine, 'only', false);
  await engine.advance('61 seconds');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ leases: 1 });
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 queued']);
});

test('unpause() says what is still paused, and doctor() lists it with the statements that help', async ({ engine }) => {
  await engine.configureWakeUps();
  await engine.pipeline(chain(['first', 'second']));
  await engine.sql.query('select millrace.sweep()');
  const paused = async () =>
    (await engine.rows(`select ok, detail from millrace.doctor() where what = 'nothing is paused'`))[0];
  const unpause = (...names: string[]) =>
    engine.value(`select millrace.unpause(${names.map((name) => `'${name}'`).join(', ')})`);
  expect(await paused()).toEqual({ ok: true, detail: 'nothing is' });
  await engine.sql.query(`select millrace.pause('flow'), millrace.pause('flow', 'second')`);
  expect(await paused()).toEqual({
    ok: false,
    detail: `pipeline flow: select millrace.unpause('flow'); stage second of flow: select millrace.unpause('flow', 'second');`,
  });
  expect(await unpause('flow', 'second')).toBe(`still paused: select millrace.unpause('flow');`);
  await engine.sql.query(`select millrace.pause('flow', 'second')`);
  expect(await unpause('flow')).toBe(`still paused: select millrace.unpause('flow', 'second');`);
  expect(await unpause('flow', 'second')).toBeNull();
  expect(await unpause('flow')).toBeNull();
  expect(await paused()).toMatchObject({ ok: true });
});
