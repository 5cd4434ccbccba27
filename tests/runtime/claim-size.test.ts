// How much a worker takes: less after the database cancelled a claim, and no more in hand than a batch with all its bytes.
import { expect, test } from 'vitest';
import type { RpcAnswer } from '../../supabase/functions/_millrace/engine/engine-client.ts';
import { FakeEngine, makeItem } from '../support/runtime/fake-engine.ts';
import { budgetOf, gate, makeDrain } from '../support/runtime/make-drain.ts';

const done = (entity: { id: number }) => ({ done: entity.id });
const cancelled: RpcAnswer = {
  data: null,
  error: { message: 'canceling statement due to statement timeout', code: '57014' },
  status: 500,
};

/** An engine in whose database a claim of more than `most` items takes too long. */
function slowEngine(items: number, most: () => number): FakeEngine {
  const fake = new FakeEngine();
  fake.limits = { ...fake.limits, batch_size: 8 };
  fake.queue = Array.from({ length: items }, (_, i) => makeItem(i + 1));
  fake.before = (_, args) => (Number(args.p_limit ?? 0) > most() ? cancelled : null);
  return fake;
}
const limitsOf = (fake: FakeEngine) =>
  fake.calls.filter((call) => 'p_limit' in call.args).map((call) => call.args.p_limit as number);

test('a claim that timed out is repeated for half as many items, down to one', async () => {
  const fake = slowEngine(2, () => 1);
  expect(await makeDrain(fake, done, { batchSize: 8 }).drain.run()).toBe('empty');
  const claims = fake.callsOf('millrace_claim');
  expect(claims.slice(0, 4).map((call) => [call.p_seq, call.p_limit])).toEqual([
    [1, 8],
    [1, 4],
    [1, 2],
    [1, 1],
  ]);
  expect(fake.saved.size).toBe(2);
});

test('the size of a claim grows again after claims that succeed, one item at a time', async () => {
  let most = 2;
  const fake = slowEngine(60, () => most);
  const { drain } = makeDrain(
    fake,
    (entity) => {
      most = 8;
      return done(entity);
    },
    { batchSize: 8 },
  );
  expect(await drain.run()).toBe('empty');
  const taken = limitsOf(fake).filter((limit) => limit > 0);
  expect(taken.slice(0, 9)).toEqual([8, 4, 2, 3, 4, 5, 6, 7, 8]);
  expect(fake.saved.size).toBe(60);
});

test('a completion that timed out is repeated without its claim, which is then smaller', async () => {
  const fake = slowEngine(16, () => 8);
  let slow = 1;
  const { before } = fake;
  fake.before = (name, args) =>
    name === 'millrace_complete' && Number(args.p_limit) > 0 && slow-- > 0 ? cancelled : before(name, args);
  expect(await makeDrain(fake, done, { batchSize: 8 }).drain.run()).toBe('empty');
  const [first, again] = fake.callsOf('millrace_complete');
  expect(again).toEqual({ ...first, p_limit: 0 });
  expect(limitsOf(fake).slice(0, 4)).toEqual([8, 8, 0, 4]);
  expect(fake.saved.size).toBe(16);
});

test('a completion that times out without a claim as well is halved, down to what can be recorded', async () => {
  const fake = slowEngine(16, () => 8);
  const { before } = fake;
  const itemsOf = (args: Record<string, unknown>) => (args.p_items as unknown[]).length;
  fake.before = (name, args) => (name === 'millrace_complete' && itemsOf(args) > 2 ? cancelled : before(name, args));
  expect(await makeDrain(fake, done, { batchSize: 8 }).drain.run()).toBe('empty');
  expect(fake.saved.size).toBe(16);
});

test('any other lost answer is asked for again as it was', async () => {
  const fake = slowEngine(3, () => 8);
  let lost = 1;
  fake.after = () => (lost-- > 0 ? { data: null, error: { message: 'connection reset' }, status: 0 } : null);
  expect(await makeDrain(fake, done, { batchSize: 8 }).drain.run()).toBe('empty');
  const [first, again] = fake.callsOf('millrace_claim');
  expect(again).toEqual(first);
  expect(fake.saved.size).toBe(3);
});

test('a worker whose batch had all its bytes takes one item for each that it has saved', async () => {
  const fake = new FakeEngine();
  fake.queue = [1, 2, 3, 4].map((id) => makeItem(id));
  fake.after = (name, args) => {
    if (name !== 'millrace_claim' || args.p_seq !== 1) return null;
    const batch = [makeItem(11), makeItem(12)];
    const answer = { status: 'working', lease_ms: 60_000, stage: fake.limits, batch, wake: [], cut: true };
    return { data: answer, error: null, status: 200 };
  };
  fake.queue = [];
  const slow = gate();
  const { drain } = makeDrain(
    fake,
    async (entity) => {
      if (entity.id === 12) await slow.opened;
      if (entity.id === 11) fake.queue = [makeItem(1)];
      if (entity.id === 1) slow.open();
      return done(entity);
    },
    { batchSize: 50, budget: budgetOf(5_000) },
  );
  await drain.run();
  expect(limitsOf(fake).slice(0, 2)).toEqual([50, 1]);
  expect(fake.saved.size).toBe(3);
});

test('the handler of a row that is too large is not run, and its failure is reported', async () => {
  const fake = new FakeEngine();
  const failure = { code: 'row_too_large', message: 'the row has 20 bytes' };
  fake.queue = [makeItem(1, { entity: {}, failure }), makeItem(2)];
  const seen: number[] = [];
  await makeDrain(fake, (entity) => {
    seen.push(entity.id);
    return done(entity);
  }).drain.run();
  expect(seen).toEqual([2]);
  expect(fake.saved.get(1)).toMatchObject({ outcome: 'failed', error: { ...failure, permanent: true } });
  expect(fake.saved.get(2)).toMatchObject({ outcome: 'completed' });
});
