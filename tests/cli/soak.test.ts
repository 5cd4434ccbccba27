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
  expect(hunts.filter((file) => file.startsWith('tests/soak/'))).toEqual([]);
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
