import { expect, test } from 'vitest';
import { createBudget, type Used, usedUp } from '../../supabase/functions/_millrace/worker/budget.ts';

const idle: Used = { cpuMs: 0, memoryBytes: 0 };

test('work fits only if it can end within the wall clock', () => {
  const budget = createBudget(10, () => idle);
  expect(budget.fits(9_000)).toBe(true);
  expect(budget.fits(10_500)).toBe(false);
});

test('what is finished may be saved until 1.8 times the worker’s seconds, less than the platform’s wall clock', () => {
  const budget = createBudget(100, () => idle);
  expect(budget.savesUntil - budget.endsAt).toBeCloseTo(80_000, -1);
});

test('nothing fits once 0.8 s of CPU are used since the start, whatever was used before', () => {
  const used = { cpuMs: 5_000, memoryBytes: 0 };
  const budget = createBudget(60, () => used);
  expect(budget.fits(1)).toBe(true);
  used.cpuMs += 799;
  expect(budget.fits(1)).toBe(true);
  used.cpuMs += 1;
  expect(budget.fits(1)).toBe(false);
});

test('nothing fits once most of the memory is used', () => {
  const used = { cpuMs: 0, memoryBytes: 20 * 1024 * 1024 };
  const budget = createBudget(60, () => used);
  expect(budget.fits(1)).toBe(true);
  used.memoryBytes = 151 * 1024 * 1024;
  expect(budget.fits(1)).toBe(false);
});

test.for(['cpu', 'memory'] as const)('a limit of %s is the doing of what used half of it', (limit) => {
  const before = { cpuMs: 300, memoryBytes: 100 * 1024 * 1024 };
  const half = { cpuMs: 700, memoryBytes: 175 * 1024 * 1024 };
  expect(usedUp(limit, before, half)).toBe(true);
  expect(usedUp(limit, before, { cpuMs: half.cpuMs - 1, memoryBytes: half.memoryBytes - 1 })).toBe(false);
});

test('where the runtime does not tell what was used, a limit is the doing of what ran', () => {
  expect(usedUp('cpu', idle, idle)).toBe(true);
  expect(usedUp('memory', idle, idle)).toBe(true);
});
