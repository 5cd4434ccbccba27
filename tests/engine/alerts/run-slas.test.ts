// Bounds for runs: median and 95th percentile from start to end; what never ends counts with its age.
import { expect } from 'vitest';
import { chain, type Engine, findingsTest as test } from '../../support/engine.ts';
import { runStage } from '../../support/worker.ts';

const sweep = (engine: Engine) => engine.sql.query('select millrace.sweep()');
const told = async (engine: Engine) => (await engine.rows('select * from millrace.run_slas'))[0];

async function bounded(engine: Engine, sla: object = { median_seconds: 1200, p95_seconds: 7200 }): Promise<void> {
  const definition = await engine.pipeline(chain(['only'], { max_workers: 50 }));
  await engine.define({ ...definition, sla });
}

/** Starts so many runs and ends them after so many minutes. */
async function runFor(engine: Engine, count: number, minutes: number): Promise<void> {
  await engine.queued('only', count);
  await engine.advance(`${minutes} minutes`);
  await runStage(engine, 'only');
}

test('runs that end in time keep to their bounds', async ({ engine }) => {
  await bounded(engine);
  await runFor(engine, 20, 5);
  await sweep(engine);
  expect(await told(engine)).toMatchObject({
    pipeline: 'flow',
    runs: '20',
    overdue: '0',
    median_bound: 1200,
    p95_bound: 7200,
    ok: true,
  });
});

test('more than one run in twenty past the bound is too many, one in twenty is not', async ({ engine }) => {
  await bounded(engine, { p95_seconds: 1200 });
  await engine.queued('only', 1);
  await engine.advance('15 minutes');
  await engine.queued('only', 19);
  await engine.advance('10 minutes');
  await runStage(engine, 'only');
  await sweep(engine);
  expect(await told(engine)).toMatchObject({ runs: '20', ok: true, median_bound: null });
  await runFor(engine, 1, 30);
  await sweep(engine);
  expect(await told(engine)).toMatchObject({ runs: '21', ok: false });
});

test('a run that does not end counts with its age, so that an outage does not look healthy', async ({ engine }) => {
  await bounded(engine);
  await runFor(engine, 10, 1);
  await engine.queued('only', 30);
  await engine.advance('19 minutes');
  await sweep(engine);
  expect(await told(engine)).toMatchObject({ runs: '10', overdue: '0', ok: true });
  await engine.advance('2 minutes');
  await sweep(engine);
  expect(await told(engine)).toMatchObject({ runs: '40', overdue: '30', ok: false });
  await runStage(engine, 'only');
  await engine.advance('61 minutes');
  await sweep(engine);
  expect(await told(engine)).toMatchObject({ runs: '0', overdue: '0', ok: true, p95_seconds: null });
});

test('a run that a bypass has cut short has not come to its end, however soon it did', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['only', 'last']));
  await engine.define({ ...definition, sla: { median_seconds: 1200 } });
  await engine.queued('only', 3);
  await runStage(engine, 'only');
  await engine.sql.query(`select millrace.bypass('flow', 'last', 'the model is down')`);
  expect(await engine.value(`select count(*)::int from millrace.runs where status = 'completed'`)).toBe(3);
  await sweep(engine);
  expect(await told(engine)).toMatchObject({ runs: '0', overdue: '0', ok: true });
});

test('new bounds count at once, and without bounds there is none', async ({ engine }) => {
  await bounded(engine);
  await engine.queued('only', 3);
  await engine.advance('1 hour');
  expect(await told(engine)).toMatchObject({ overdue: '3' });
  await bounded(engine, { median_seconds: 86_400 });
  expect(await told(engine)).toMatchObject({ overdue: '0', ok: true });
  await engine.pipeline(chain(['only']));
  expect(await engine.rows(`select * from millrace.run_slas where pipeline = 'flow'`)).toEqual([]);
});

test.for([
  [{}, 'an object of median_seconds or p95_seconds or both'],
  [{ p95_seconds: 0 }, 'sla.p95_seconds is 0, but must be a number from 1 to'],
  [{ median_seconds: 'soon' }, 'sla.median_seconds is "soon", but must be a number'],
] as const)('a bound of %j is refused', async ([sla, why], { engine }) => {
  const definition = await engine.pipeline(chain(['only']));
  const { code, message } = await engine.refusedDefinition({ ...definition, sla });
  expect(code).toBe('MR001');
  expect(message).toContain(why);
});
