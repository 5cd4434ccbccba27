import fs from 'node:fs';
import { expect, test } from 'vitest';
import { sampleOf } from '../support/sample-of-tests.ts';
import { scenarios, scenariosOfOthers } from '../support/scenarios.ts';

const files = Array.from({ length: 100 }, (_, at) => ({ file: `f${at}.test.ts`, bytes: 1000 + at * 10 }));
const bytesOf = (names: string[]) =>
  files.filter(({ file }) => names.includes(file)).reduce((sum, { bytes }) => sum + bytes, 0);

test('a sample is the same for the same commit, and no larger than its part', () => {
  const sample = sampleOf(files, 'a', 10);
  expect(sample).toEqual(sampleOf(files, 'a', 10));
  expect(sample).not.toEqual(sampleOf(files, 'b', 10));
  expect(bytesOf(sample)).toBeLessThanOrEqual(bytesOf(files.map(({ file }) => file)) / 10);
  expect(sample.length).toBeGreaterThan(5);
});

test('many commits cover every file', () => {
  const covered = new Set(Array.from({ length: 100 }, (_, at) => sampleOf(files, `commit ${at}`, 10)).flat());
  expect(covered.size).toBe(files.length);
});

test('five commits in a row run every scenario once, and whoever names no commit runs all', () => {
  const all = scenarios.flat();
  const run = [1200, 1201, 1202, 1203, 1204].flatMap((commits) =>
    all.filter((file) => !scenariosOfOthers(String(commits)).includes(file)),
  );
  expect(run.sort()).toEqual(all.sort());
  expect(scenariosOfOthers(undefined)).toEqual([]);
  expect(all.filter((file) => !fs.existsSync(file))).toEqual([]);
});
