import { expect, test } from 'vitest';
import { sliceOf } from '../support/slice-of-tests.ts';

const files = Array.from({ length: 100 }, (_, at) => ({ file: `f${at}.test.ts`, bytes: 1000 + at * 10 }));
const bytesOf = (names: string[]) =>
  files.filter(({ file }) => names.includes(file)).reduce((sum, { bytes }) => sum + bytes, 0);

test('a slice is the same for the same commit, and no larger than its part', () => {
  const slice = sliceOf(files, 'a', 10);
  expect(slice).toEqual(sliceOf(files, 'a', 10));
  expect(slice).not.toEqual(sliceOf(files, 'b', 10));
  expect(bytesOf(slice)).toBeLessThanOrEqual(bytesOf(files.map(({ file }) => file)) / 10);
  expect(slice.length).toBeGreaterThan(5);
});

test('many commits cover every file', () => {
  const covered = new Set(Array.from({ length: 100 }, (_, at) => sliceOf(files, `commit ${at}`, 10)).flat());
  expect(covered.size).toBe(files.length);
});
