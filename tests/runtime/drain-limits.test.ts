import { expect, test } from 'vitest';
import { FakeEngine, makeItem } from '../support/runtime/fake-engine.ts';
import { budgetOf, makeDrain } from '../support/runtime/make-drain.ts';

const done = (entity: { id: number }) => ({ done: entity.id });

/** An engine whose stage is at its limits for the next claims: each answers one of `waits`. */
function limited(waits: (number | null)[], items = 1): FakeEngine {
  const fake = new FakeEngine();
  fake.queue = Array.from({ length: items }, (_, number) => makeItem(number + 1));
  fake.before = (name) => {
    const wait = name === 'millrace_claim' ? waits.shift() : undefined;
    if (wait === undefined) return null;
    const stage = fake.limits;
    const data = { status: 'empty', reason: null, lease_ms: 60_000, stage, batch: [], wake: [], wait_ms: wait };
    return { data, error: null, status: 200 };
  };
  return fake;
}

test('a worker of a stage at its limits asks again when it is told to, without leaving', async () => {
  const fake = limited([60, 0]);
  const startedAt = Date.now();
  expect(await makeDrain(fake, done).drain.run()).toBe('empty');
  // A timer may be a millisecond early, by another clock.
  expect(Date.now() - startedAt).toBeGreaterThanOrEqual(58);
  expect(fake.saved.size).toBe(1);
  expect(fake.calls.map((call) => call.name).slice(0, 3)).toEqual([
    'millrace_claim',
    'millrace_claim',
    'millrace_claim',
  ]);
});

test('a worker leaves at once where waiting is no use, or takes too long', async () => {
  for (const wait of [null, 60_000]) {
    const fake = limited([wait]);
    fake.leaveAnswers = [true];
    expect(await makeDrain(fake, done).drain.run()).toBe('empty');
    expect(fake.calls.map((call) => call.name)).toEqual(['millrace_claim', 'millrace_leave']);
  }
});

test('the budget of a worker ends the waiting, and the worker hands over', async () => {
  const fake = limited(Array.from({ length: 100 }, () => 30));
  const budget = budgetOf(10_000, 0, () => fake.calls.length < 4);
  expect(await makeDrain(fake, done, { budget }).drain.run()).toBe('handed_over');
  expect(fake.callsOf('millrace_leave')).toMatchObject([{ p_hand_over: true }]);
});

test('an unloaded worker stops waiting', async () => {
  const fake = limited(Array.from({ length: 100 }, () => 50));
  const { drain } = makeDrain(fake, done);
  const end = drain.run();
  drain.unload('wall clock');
  expect(await end).toBe('unloaded');
  expect(fake.saved.size).toBe(0);
});
