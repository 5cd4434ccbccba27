import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { drawPlan, faults, operations } from '../soak/plan.ts';
import { projectFolder, runNode } from './run-command.ts';

/** The files that `npm run soak -- …` would run. */
async function filesOf(...words: string[]): Promise<string[]> {
  const vitest = path.join(projectFolder, 'node_modules', 'vitest', 'vitest.mjs');
  const { stdout } = await runNode([vitest, 'list', '--filesOnly', '--config', 'vitest.soak.config.ts', ...words]);
  return stdout.split('\n').filter((line) => line.endsWith('.test.ts'));
}

test('the word chaos plays campaigns alone, and without a word the hunts are run', async () => {
  expect(await filesOf('chaos')).toEqual(['tests/soak/chaos.test.ts']);
  const hunts = await filesOf();
  expect(hunts).toContain('tests/engine/random-graphs.test.ts');
  expect(hunts).not.toContain('tests/soak/chaos.test.ts');
});

/** The tests' own files, but those that `npm run bench` and campaigns run. */
const files = fs
  .readdirSync(path.join(projectFolder, 'tests'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts') && !/^(?:bench|soak|cli\/soak)\b/.test(file))
  .map((file) => ({ file: `tests/${file}`, text: fs.readFileSync(path.join(projectFolder, 'tests', file), 'utf8') }));

test('each file that does more in a soak is one of the hunts', async () => {
  const asking = files.filter(({ text }) => /process\.env\.SOAK|huntLength\(/.test(text)).map(({ file }) => file);
  expect(asking).toContain('tests/cli/whole-way.test.ts');
  expect(await filesOf()).toEqual(expect.arrayContaining(asking));
});

test('no test holds a time to a bound where others share the machine', () => {
  const bound =
    /expect(?:\.soft)?\((?:.*\W)?(?:\w*Ms|ms|took|elapsed|user|\w*(?:Date|performance)\.now\(\)|.*cpuUsage\(.*)[^)]*\)+\.toBeLess/;
  expect('    expect(Date.now() - before).toBeLessThan(3000);').toMatch(bound);
  expect('  for (const ms of [allMs]) expect(ms).toBeLessThan(1000);').toMatch(bound);
  const lines = files.flatMap(({ file, text }) =>
    text.split('\n').map((line, at) => ({ line, place: `${file}:${at + 1}` })),
  );
  const bounds = lines.filter(({ line }) => bound.test(line));
  expect(bounds.filter(({ line }) => !line.includes('if (process.env.SOAK)')).map(({ place }) => place)).toEqual([]);
});

test('a seed draws the same plan each time, and another seed another', () => {
  expect(drawPlan(123)).toEqual(drawPlan(123));
  expect(drawPlan(123).steps).not.toEqual(drawPlan(124).steps);
});

test('a hundred campaigns play every operation and every fault', () => {
  const plans = Array.from({ length: 100 }, (_, seed) => drawPlan(seed));
  const played = new Set(plans.flatMap(({ opening, steps }) => [...opening, ...steps].map(({ kind }) => kind)));
  expect([...played].sort()).toEqual([...Object.keys(operations), ...Object.keys(faults)].sort());
});
