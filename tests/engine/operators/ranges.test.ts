// The ranges of the operator's page and of status: the same stretch of time now and before, in as many steps.
import { expect } from 'vitest';
import type { Series } from '../../../operators/answers.ts';
import { emptyIn, paceOf, rangeOf, ranges, stretchesOf } from '../../../operators/ranges.ts';
import { signIn } from '../../support/engine/operators.ts';
import { chain, type Engine, findingsTest as test } from '../../support/engine.ts';
import { completed, Worker } from '../../support/worker.ts';

/** Completes so many runs now, and has their pulses added up. */
async function complete(engine: Engine, rows: number): Promise<void> {
  await engine.queued('one', rows);
  const worker = await Worker.of(engine, 'one');
  await worker.report(...(await worker.take()).map((item) => completed(item as never)));
  await engine.sql.query('select millrace.sweep()');
}

test('each range has what ended in it and in the time before, step beside step', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  // 45 days, 10 days, 36 hours, 12 hours and 90 minutes ago, and just now.
  for (const [rows, pause] of [
    [1, '35 days'],
    [2, '204 hours'],
    [3, '24 hours'],
    [4, '630 minutes'],
    [5, '85 minutes'],
    [6, '5 minutes'],
  ] as const) {
    await complete(engine, rows);
    await engine.advance(pause);
  }
  const operator = await signIn(engine, 'ann', { role: 'viewer', payloads: true });
  const now = Date.parse(await engine.value<string>('select millrace.now()'));
  for (const [name, inRange, inBefore] of [
    ['1h', 6, 5],
    ['24h', 15, 3],
    ['7d', 18, 2],
    ['30d', 20, 1],
  ] as const) {
    const asked = stretchesOf(rangeOf(name), now);
    const of = async (which: 'now' | 'before') => {
      const { points } = await operator.ask<Series>('series', { pipeline: 'flow', ...asked[which] });
      return { steps: points.length, completed: points.reduce((sum, point) => sum + point.completed, 0) };
    };
    const [current, before] = [await of('now'), await of('before')];
    expect({ name, found: [current.completed, before.completed] }).toEqual({ name, found: [inRange, inBefore] });
    expect(before.steps).toBe(current.steps);
    expect(current.steps).toBeLessThanOrEqual(61);
  }
});

test('the stages that are named have their trend, by the minute in an hour and by the hour in a day', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two']));
  const operator = await signIn(engine, 'ann', { role: 'viewer', payloads: true });
  const now = async () => Date.parse(await engine.value<string>('select millrace.now()'));
  const trends = async (range: string, named?: string[]) => {
    const query = { pipeline: 'flow', trends: named, ...stretchesOf(rangeOf(range), await now()).now };
    const { stages = {} } = await operator.ask<Series>('series', query);
    return [stages.one, stages.two].map((of) => of?.trend && Object.values(of.trend).sort());
  };
  await complete(engine, 3);
  await engine.advance('20 minutes');
  await complete(engine, 2);
  await engine.advance('5 seconds');
  expect(await trends('1h', ['one', 'two'])).toEqual([[2, 3], null]);
  expect(await trends('1h', ['two'])).toEqual([null, null]);
  expect(await trends('1h')).toEqual([null, null]);
  // Both within one hour, an hour later.
  const minute = new Date(await now()).getUTCMinutes();
  await engine.advance(`${90 - minute} minutes`);
  await complete(engine, 4);
  await engine.advance('5 minutes');
  await complete(engine, 5);
  await engine.advance('1 hour');
  expect((await trends('24h', ['one']))[0]).toContain(9);
});

test('backlog and oldest age of a stage and its pipeline are sampled each minute, and a step has the highest', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two']));
  const sweep = () => engine.sql.query('select millrace.sweep()');
  const operator = await signIn(engine, 'ann', { role: 'viewer', payloads: true });
  const now = async () => Date.parse(await engine.value<string>('select millrace.now()'));
  /** Returns the ready rows and the highest age of each step that has any. */
  const seen = async (range: string, stage?: string) => {
    const query = { pipeline: 'flow', ...(stage && { stage }), ...stretchesOf(rangeOf(range), await now()).now };
    const { points } = await operator.ask<Series>('series', query);
    return points.filter(({ ready }) => ready > 0).map(({ ready, oldest_ms }) => [ready, oldest_ms]);
  };
  // At the beginning of an hour, so that all samples are in one.
  await engine.advance(`${60 - new Date(await now()).getUTCMinutes()} minutes`);
  await engine.queued('one', 3);
  await sweep();
  await engine.advance('1 minute');
  const worker = await Worker.of(engine, 'one');
  await worker.report(...(await worker.take(2)).map((item) => completed(item as never)));
  await sweep();
  await engine.advance('1 minute');
  await sweep();
  await engine.advance('5 seconds');
  expect(await seen('1h', 'one')).toEqual([
    [3, 0],
    [1, 60_000],
    [1, 120_000],
  ]);
  expect(await seen('1h', 'two')).toEqual([
    [2, 0],
    [2, 60_000],
  ]);
  expect(await seen('1h')).toEqual([
    [3, 0],
    [3, 60_000],
    [3, 120_000],
  ]);
  for (const range of ['24h', '7d', '30d'])
    for (const stage of ['one', '']) expect(await seen(range, stage), range).toEqual([[3, 120_000]]);
  // Hours are kept where minutes are not.
  await engine.sql.query(`select millrace.cancel(id) from millrace.runs where status = 'running'`);
  await engine.advance('3 days');
  await sweep();
  expect(await engine.value(`select count(*)::int from millrace.sums where unit = 'minute'`)).toBe(0);
  expect(await seen('7d', 'one')).toEqual([[3, 120_000]]);
  expect(await seen('7d', 'two')).toEqual([[2, 60_000]]);
});

test('an unknown range is the last hour, and a queue is empty by the pace of the last five minutes, or never', () => {
  expect(rangeOf('2h')).toBe(ranges[0]);
  const now = Date.parse('2026-11-02T09:10:30Z');
  const pace = paceOf({ '2026-11-02T09:05:00+00:00': 900, '2026-11-02T09:06:00+00:00': 60 }, now);
  expect(pace).toEqual({ completed: 60, seconds: 270 });
  expect(emptyIn(30, pace)).toBe(135_000);
  const idle = paceOf({ '2026-11-02T08:30:00+00:00': 900 }, now);
  expect([emptyIn(0, pace), emptyIn(30, idle)], 'nothing completes').toEqual([null, null]);
});
