import { expect, test } from 'vitest';
import { createBudget } from '../../supabase/functions/_millrace/worker/budget.ts';

test('work fits only if it can end within the wall clock', () => {
  const budget = createBudget(10, () => 0);
  expect(budget.fits(9_000)).toBe(true);
  expect(budget.fits(10_500)).toBe(false);
});

test('finished work may be saved until 1.8 times the worker’s seconds, less than the platform’s wall clock', () => {
  const budget = createBudget(100, () => 0);
  expect(budget.savesUntil - budget.endsAt).toBeCloseTo(80_000, -1);
});

test('nothing fits once most of the memory is used', () => {
  let used = 20 * 1024 * 1024;
  const budget = createBudget(60, () => used);
  expect(budget.fits(1)).toBe(true);
  used = 151 * 1024 * 1024;
  expect(budget.fits(1)).toBe(false);
});
