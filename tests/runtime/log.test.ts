// The events that a function writes to its log, held against what the platform keeps: 100 events in ten seconds, of 10,000 characters each.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLog, flushLog } from '../../supabase/functions/_millrace/log.ts';

/** Events in their order, each with when it was written. */
let events: { level: string; text: string; at: number }[];
beforeEach(() => {
  vi.useFakeTimers({ now: Date.now() + 3_600_000 * (1 + Math.random()) });
  events = [];
  for (const [method, level] of Object.entries({ log: 'info', warn: 'warn', error: 'error' })) {
    vi.spyOn(console, method as 'log').mockImplementation((text) => events.push({ level, text, at: Date.now() }));
  }
});
afterEach(() => {
  vi.runAllTimers();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const lines = () =>
  events.flatMap(({ text }) => text.split('\n')).map((text) => JSON.parse(text) as { message: string });
/** The most events in any ten seconds. */
const most = () => Math.max(...events.map(({ at }) => events.filter((e) => e.at >= at && e.at < at + 10_000).length));

test('two hundred rows that write a line at once lose none, in fewer events than the platform keeps', () => {
  for (let row = 0; row < 200; row++) createLog({ run: row }).info('done', { text: 'x'.repeat(200) });
  vi.advanceTimersByTime(1_000);
  expect(lines().map((line) => (line as unknown as { run: number }).run)).toEqual(
    Array.from({ length: 200 }, (_, at) => at),
  );
  expect(events.length).toBeLessThan(100);
  expect(Math.max(...events.map(({ text }) => text.length))).toBeLessThan(10_000);
});

test('lines without room are counted, and the count is written once there is room', () => {
  const log = createLog({ stage: 'only' });
  for (let line = 0; line < 5_000; line++) log.info(`line ${line}`, { text: 'x'.repeat(300) });
  expect(events).toHaveLength(90);
  vi.advanceTimersByTime(11_000);
  const told = lines();
  const leftOut = told.filter((line): line is { message: string; left_out: number } => 'left_out' in line);
  expect(leftOut.reduce((sum, { left_out }) => sum + left_out, 0)).toBe(5_000 - (told.length - leftOut.length));
  expect(leftOut).toHaveLength(1);
  expect(leftOut[0]?.message).toMatch(/^\d+ lines of the log were left out/);
  expect(most()).toBeLessThanOrEqual(100);
  const before = events.length;
  log.info('as ever');
  expect(events).toHaveLength(before + 1);
});

test('lines that come now and then go out at once, and a bundle is as grave as its gravest line', () => {
  const log = createLog({});
  log.warn('one');
  expect(events).toMatchObject([{ level: 'warn' }]);
  for (let line = 1; line < 60; line++) log.info('many');
  log.error('broken');
  log.info('after');
  flushLog();
  expect(events.at(-1)).toMatchObject({ level: 'error' });
  expect(lines().slice(-2)).toMatchObject([{ message: 'broken' }, { message: 'after' }]);
});

test('a line that is too long tells its beginning and how much is missing', () => {
  createLog({ run: 7 }).info('answered', { text: 'y'.repeat(50_000) });
  const [line] = lines();
  expect(events[0]?.text.length).toBeLessThan(10_000);
  expect(line).toMatchObject({ message: 'answered', run: 7, cut: expect.stringContaining('yyy') });
  expect((line as unknown as { left_out_characters: number }).left_out_characters).toBeGreaterThan(45_000);
});

test('a field that is no JSON fails nothing', () => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  const log = createLog({ run: 7 });
  log.info('a number', { many: 2n ** 60n });
  log.info('a circle', { circle, many: 1n });
  expect(lines()).toMatchObject([
    { many: '1152921504606846976' },
    { message: 'a circle', run: 7, many: '1', left_out: expect.stringContaining('no JSON') },
  ]);
});
