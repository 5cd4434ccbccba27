import { describe, expect, test, vi } from 'vitest';
import type { Item, OutcomeItem } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import { Isolate } from '../../supabase/functions/_millrace/worker/isolate.ts';
import { ItemsInWork } from '../../supabase/functions/_millrace/worker/items-in-work.ts';
import { FakeEngine, failedAnswer, makeItem } from '../support/runtime/fake-engine.ts';
import { budgetOf, gate, makeDrain, type TestHandler } from '../support/runtime/make-drain.ts';

const done = (entity: { id: number }) => ({ done: entity.id });

/** Lets everything else that is due go first, a few times over. */
async function turns(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}

function fakeWith(count: number): FakeEngine {
  const fake = new FakeEngine();
  fake.queue = Array.from({ length: count }, (_, i) => makeItem(i + 1));
  return fake;
}

describe('a drain', () => {
  test('works until the stage is empty, then leaves', async () => {
    const fake = fakeWith(8);
    const { drain, woken } = makeDrain(fake, done);
    expect(await drain.run()).toBe('empty');
    expect([...fake.saved.keys()].sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(fake.saved.get(5)).toMatchObject({ outcome: 'completed', result: { done: 5 } });
    expect(fake.calls.at(-1)?.name).toBe('millrace_leave');
    expect(woken).toEqual([]);
  });

  test('numbers its claims and completions one after the other', async () => {
    const fake = fakeWith(5);
    await makeDrain(fake, done).drain.run();
    const numbered = fake.calls.filter((call) => 'p_seq' in call.args).map((call) => call.args.p_seq);
    expect(numbered).toEqual(numbered.map((_, i) => i + 1));
  });

  test('runs handlers side by side, never more than the stage allows', async () => {
    const fake = fakeWith(7);
    let running = 0;
    let most = 0;
    await makeDrain(fake, async (entity) => {
      most = Math.max(most, ++running);
      await turns();
      running--;
      return done(entity);
    }).drain.run();
    expect(most).toBe(3);
  });

  test('holds as many items as QUEUE_BATCH_SIZE says, where it is set', async () => {
    const fake = fakeWith(4);
    await makeDrain(fake, done, { batchSize: 1 }).drain.run();
    const limits = fake.calls.filter((call) => 'p_limit' in call.args).map((call) => call.args.p_limit);
    expect(Math.max(...(limits as number[]))).toBe(1);
    expect(fake.saved.size).toBe(4);
  });

  test('takes up new work while a slow handler holds one slot', async () => {
    const fake = fakeWith(1);
    const slow = gate();
    const { drain } = makeDrain(fake, async (entity) => {
      if (entity.id === 1) await slow.opened;
      return done(entity);
    });
    const end = drain.run();
    await vi.waitFor(() => expect(fake.queue).toEqual([]));
    fake.queue = [makeItem(2)];
    await vi.waitFor(() => expect(fake.saved.has(2)).toBe(true), 5_000);
    expect(fake.saved.has(1)).toBe(false);
    slow.open();
    expect(await end).toBe('empty');
  });

  test('ends quietly when the engine grants no claim', async () => {
    const fake = fakeWith(1);
    fake.refuse = 'the stage is switched off';
    expect(await makeDrain(fake, done).drain.run()).toBe('refused');
    expect(fake.calls.map((call) => call.name)).toEqual(['millrace_claim', 'millrace_leave']);
    expect(fake.queue).toHaveLength(1);
  });

  test('claims again when the engine says at its leave that work has come', async () => {
    const fake = fakeWith(0);
    fake.leaveAnswers = [false];
    fake.before = (name) => {
      if (name === 'millrace_leave' && fake.leaveAnswers.length === 1) fake.queue = [makeItem(9)];
      return null;
    };
    expect(await makeDrain(fake, done).drain.run()).toBe('empty');
    expect(fake.saved.has(9)).toBe(true);
  });

  test('wakes the stages the engine names', async () => {
    const fake = fakeWith(1);
    fake.wakes = [{ pipeline: 'test', stage: 'next', function: 'test-next' }];
    const { drain, woken } = makeDrain(fake, done);
    await drain.run();
    expect(woken).toEqual([{ pipeline: 'test', stage: 'next', function: 'test-next' }]);
  });
});

describe('whatever a handler throws', () => {
  const malformed = Object.create(null);
  test.each<[string, () => unknown]>([
    ['an object without text', () => Promise.reject(malformed)],
    [
      'such an object at once',
      () => {
        throw malformed;
      },
    ],
    ['nothing', () => Promise.reject()],
  ])('the item finishes as failed: %s', async (_, handler) => {
    const fake = fakeWith(1);
    expect(await makeDrain(fake, handler).drain.run()).toBe('empty');
    expect(fake.saved.get(1)).toMatchObject({ outcome: 'failed', error: { code: 'unexpected_error' } });
  });
});

test('an item whose handler could not even be run finishes as failed', async () => {
  const held = new ItemsInWork(new Isolate(), () => Promise.reject(new Error('broken')));
  held.add([makeItem(1)]);
  await vi.waitFor(() => expect(held.running).toBe(0));
  expect(held.ready(Date.now())).toMatchObject([
    { attempt: 1, outcome: 'failed', error: { code: 'unexpected_error', detail: 'broken' } },
  ]);
});

describe('saving', () => {
  test('the last completion says goodbye, so that no call is made to leave', async () => {
    const fake = fakeWith(3);
    fake.takesGoodbyes = true;
    expect(await makeDrain(fake, done).drain.run()).toBe('empty');
    expect(fake.calls.map((call) => call.name)).toEqual(['millrace_claim', 'millrace_complete']);
    expect(fake.callsOf('millrace_complete')).toMatchObject([{ p_goodbye: true }]);
  });

  test('a finished item waits for running ones a tenth of its own time, a quarter of a second at most', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      for (const [took, waits] of [
        [20, 8],
        [1_000, 100],
        [60_000, 250],
      ] as const) {
        const held = new ItemsInWork(new Isolate(), ({ attempt }) =>
          attempt === 1 ? quick.opened.then(() => ({ outcome: 'completed', result: 1 })) : new Promise(() => {}),
        );
        const quick = gate();
        held.add([makeItem(1), makeItem(2)]);
        vi.setSystemTime(Date.now() + took);
        quick.open();
        await turns();
        expect(held.gatheringMs()).toBe(waits);
        held.drop(2);
        expect(held.gatheringMs()).toBe(0);
      }
    } finally {
      vi.useRealTimers();
    }
  });

  test('sends a busy item again until its row is free, and runs its handler once', async () => {
    const fake = fakeWith(1);
    let busy = 3;
    fake.verdictFor = () => (busy-- > 0 ? 'busy' : 'accepted');
    const handler = vi.fn(done);
    expect(await makeDrain(fake, handler).drain.run()).toBe('empty');
    expect(fake.callsOf('millrace_complete')).toHaveLength(4);
    expect(fake.saved.get(1)).toMatchObject({ outcome: 'completed' });
    expect(handler).toHaveBeenCalledTimes(1);
  });

  test('leaves a busy item unsaved, with a log line, when all time to save is used', async () => {
    const fake = fakeWith(1);
    fake.verdictFor = () => 'busy';
    const { drain, log } = makeDrain(fake, done, { budget: budgetOf(2_300, 300) });
    await drain.run();
    expect(fake.saved.size).toBe(0);
    expect(log.lines.some((line) => line.includes('was not saved') && line.includes('"attempt":1'))).toBe(true);
    const sent = fake.callsOf('millrace_complete').flatMap((args) => args.p_items as { outcome: string }[]);
    expect(new Set(sent.map((item) => item.outcome))).toEqual(new Set(['completed']));
    // 25, 50, 100 … 1,000 ms apart.
    expect(sent.length).toBeLessThan(12);
  });

  test('keeps sending a busy item after the budget, renews its lease, claims nothing and lets a successor begin', async () => {
    const fake = fakeWith(1);
    fake.limits.timeout_ms = 100;
    fake.leaseMs = 90;
    fake.verdictFor = () => (Date.now() < freedAt ? 'busy' : 'accepted');
    const budget = budgetOf(2_300, 5_000);
    const freedAt = budget.endsAt + 100;
    fake.before = (name) => {
      if (name === 'millrace_leave' && fake.callsOf('millrace_leave').length === 1) fake.queue = [makeItem(2)];
      return null;
    };
    const { drain, log, woken } = makeDrain(fake, done, { budget });
    const end = drain.run();
    await vi.waitFor(() => expect(fake.queue).toHaveLength(1), 5_000);
    expect(fake.saved.size).toBe(0);
    const before = fake.calls.length;
    expect(woken).toEqual([{ pipeline: 'test', stage: 'work', function: 'test-work' }]);
    expect(await end).toBe('handed_over');
    expect(fake.saved.get(1)).toMatchObject({ outcome: 'completed' });
    expect(log.lines.join()).not.toContain('was not saved');
    const after = fake.calls.slice(before);
    expect(after.filter((call) => call.name === 'millrace_renew').length).toBeGreaterThan(3);
    expect(after.filter((call) => Number(call.args.p_limit) > 0)).toEqual([]);
    expect(fake.queue).toHaveLength(1);
  });

  test('sends an outcome the engine refused once more, as a permanent failure with the reason', async () => {
    const fake = fakeWith(2);
    fake.verdictFor = (item) => (item.attempt === 1 && item.outcome === 'completed' ? 'rejected' : 'accepted');
    expect(await makeDrain(fake, done).drain.run()).toBe('empty');
    expect(fake.saved.get(1)).toMatchObject({
      token: makeItem(1).token,
      outcome: 'failed',
      error: { code: 'rejected', permanent: true, message: 'The engine refused the outcome: not storable' },
    });
    expect(fake.saved.get(2)).toMatchObject({ outcome: 'completed' });
  });

  test('lets go of what the engine refuses twice', async () => {
    const fake = fakeWith(1);
    fake.verdictFor = () => 'rejected';
    expect(await makeDrain(fake, done).drain.run()).toBe('empty');
    expect(fake.callsOf('millrace_complete')).toHaveLength(2);
  });

  test('accepts that the engine had made a refused outcome a failure', async () => {
    const fake = fakeWith(1);
    fake.verdictFor = (item) => (item.outcome === 'completed' ? 'rejected' : 'duplicate');
    expect(await makeDrain(fake, done).drain.run()).toBe('empty');
    expect(fake.callsOf('millrace_complete')).toHaveLength(2);
  });

  test('repeats a completion whose answer was lost with the same number and items', async () => {
    const fake = fakeWith(4);
    let lose = 2;
    fake.after = (name) => (name === 'millrace_complete' && lose-- > 0 ? failedAnswer(0, 'socket closed') : null);
    const handler = vi.fn(done);
    expect(await makeDrain(fake, handler).drain.run()).toBe('empty');
    const [first, second, third] = fake.callsOf('millrace_complete');
    expect(second).toEqual(first);
    expect(third).toEqual(first);
    expect(handler).toHaveBeenCalledTimes(4);
    expect(fake.saved.size).toBe(4);
  });

  test('a failure to save is never turned into a failure of the handler', async () => {
    const fake = fakeWith(2);
    fake.before = (name) => (name === 'millrace_complete' ? failedAnswer(503) : null);
    const { drain } = makeDrain(fake, done, { budget: budgetOf(2_100) });
    expect(await drain.run()).toBe('failed');
    const sent = fake.callsOf('millrace_complete').flatMap((args) => args.p_items as { outcome: string }[]);
    expect(sent.length).toBeGreaterThan(2);
    expect(sent.every((item) => item.outcome === 'completed')).toBe(true);
  });

  test('one item the engine cannot take spoils no other of its batch', async () => {
    const fake = fakeWith(3);
    fake.before = (name, args) => {
      const items = (args.p_items ?? []) as { attempt: number }[];
      return name === 'millrace_complete' && items.some((i) => i.attempt === 2) ? failedAnswer(400, 'no jsonb') : null;
    };
    const { drain, log } = makeDrain(fake, done);
    expect(await drain.run()).toBe('empty');
    expect([...fake.saved.keys()].sort()).toEqual([1, 3]);
    expect(log.lines.some((line) => line.includes('was not saved') && line.includes('"attempt":2'))).toBe(true);
  });

  test('a stale outcome is let go', async () => {
    const fake = fakeWith(1);
    fake.verdictFor = () => 'stale';
    expect(await makeDrain(fake, done).drain.run()).toBe('empty');
    expect(fake.callsOf('millrace_complete')).toHaveLength(1);
  });
});

describe('leases', () => {
  test('a handler whose lease was lost is aborted and reports nothing', async () => {
    const fake = fakeWith(2);
    fake.leaseMs = 60;
    fake.lost = [1];
    const aborted = gate();
    const { drain } = makeDrain(fake, async (entity, { signal }) => {
      if (entity.id === 1) await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      if (entity.id === 1) aborted.open();
      return done(entity);
    });
    expect(await drain.run()).toBe('empty');
    await aborted.opened;
    expect([...fake.saved.keys()]).toEqual([2]);
    const sent = fake.callsOf('millrace_complete').flatMap((args) => args.p_items as { attempt: number }[]);
    expect(sent.map((item) => item.attempt)).toEqual([2]);
  });

  test('leases are renewed while a handler runs, also after a renewal that failed', async () => {
    const fake = fakeWith(1);
    fake.leaseMs = 30;
    const slow = gate();
    let failures = 1;
    fake.before = (name) => (name === 'millrace_renew' && failures-- > 0 ? failedAnswer(500) : null);
    const { drain } = makeDrain(fake, async (entity) => {
      await slow.opened;
      return done(entity);
    });
    const end = drain.run();
    await vi.waitFor(() => expect(fake.callsOf('millrace_renew').length).toBeGreaterThan(3));
    slow.open();
    await end;
    expect(fake.saved.has(1)).toBe(true);
  });
});

describe('an item that must be alone', () => {
  test('starts only when its neighbours are saved, and nothing is claimed until it is done', async () => {
    const fake = new FakeEngine();
    fake.queue = [makeItem(1), makeItem(2), makeItem(3, { isolated: true }), makeItem(4)];
    const events: string[] = [];
    const first = fake.rpc;
    const rpc: typeof first = async (name, args, signal) => {
      if (name === 'millrace_complete')
        events.push(`save ${(args.p_items as { attempt: number }[]).map((i) => i.attempt)}`);
      return first(name, args, signal);
    };
    Object.assign(fake, { rpc });
    await makeDrain(fake, async (entity) => {
      events.push(`start ${entity.id}`);
      await turns();
      events.push(`end ${entity.id}`);
      return done(entity);
    }).drain.run();
    const at = (event: string) => events.findIndex((e) => e.startsWith(event));
    expect(at('start 3')).toBeGreaterThan(at('save 1,2'));
    expect(events.slice(at('start 3'), at('save 3'))).toEqual(['start 3', 'end 3']);
    expect(at('start 4')).toBeGreaterThan(at('save 3'));
    // The call that saves it claims what comes next.
    expect(fake.callsOf('millrace_complete').map((args) => args.p_limit)).toEqual([0, 3, 3]);
    expect(fake.saved.size).toBe(4);
  });

  test('two of them held at once run one after the other', async () => {
    const fake = new FakeEngine();
    let running = 0;
    let most = 0;
    fake.queue = [makeItem(7), makeItem(1, { isolated: true }), makeItem(2, { isolated: true })];
    await makeDrain(
      fake,
      async (entity) => {
        most = Math.max(most, ++running);
        await turns();
        running--;
        return done(entity);
      },
      { batchSize: 3 },
    ).drain.run();
    expect(most).toBe(1);
    expect(fake.saved.size).toBe(3);
  });
});

describe('the budget', () => {
  test('when it is used, the worker finishes what runs, leaves, then wakes a successor', async () => {
    const fake = fakeWith(9);
    let claims = 0;
    const { drain, woken } = makeDrain(fake, done, {
      budget: budgetOf(10_000, 0, () => claims++ < 2),
    });
    expect(await drain.run()).toBe('handed_over');
    expect(fake.saved.size).toBeGreaterThan(0);
    expect(fake.saved.size + fake.queue.length).toBe(9);
    expect(fake.queue.length).toBeGreaterThan(0);
    expect(woken).toEqual([{ pipeline: 'test', stage: 'work', function: 'test-work' }]);
    expect(fake.calls.at(-1)).toMatchObject({ name: 'millrace_leave', args: { p_hand_over: true } });
  });

  test('a worker that may take no more lets a successor begin at once, and what it holds runs to its end', async () => {
    const fake = fakeWith(4);
    const slow = gate();
    let retired = false;
    const isolate = new Isolate();
    const { drain, woken } = makeDrain(
      fake,
      async (entity, { signal }) => {
        if (entity.id > 1) await slow.opened;
        expect(signal.aborted).toBe(false);
        return done(entity);
      },
      { isolate, probe: async () => !retired },
    );
    const end = drain.run();
    await vi.waitFor(() => expect(fake.saved.has(1)).toBe(true));
    retired = true;
    isolate.begin(250);
    fake.queue = [makeItem(9)];
    isolate.look(async () => false);
    await vi.waitFor(() => expect(woken).toHaveLength(1));
    expect([...fake.saved.keys()]).toEqual([1]);
    expect(fake.callsOf('millrace_leave')).toMatchObject([{ p_hand_over: true }]);
    slow.open();
    expect(await end).toBe('handed_over');
    expect([...fake.saved.values()].map((item) => item.outcome)).toEqual(Array(4).fill('completed'));
    expect(fake.queue).toHaveLength(1);
  });

  test('a first claim is made whatever was used up before, so that every invocation gets something done', async () => {
    const fake = fakeWith(9);
    const { drain } = makeDrain(fake, done, { budget: budgetOf(10_000, 0, () => false) });
    expect(await drain.run()).toBe('handed_over');
    expect(fake.saved.size).toBe(1);
  });

  test('no successor is woken when nothing is left to do', async () => {
    const fake = fakeWith(1);
    let claims = 0;
    const { drain, woken } = makeDrain(fake, done, {
      budget: budgetOf(10_000, 0, () => claims++ < 1),
    });
    expect(await drain.run()).toBe('handed_over');
    expect(woken).toEqual([]);
  });

  test('a timeout that no worker can meet is an error that names the remedy', async () => {
    const fake = fakeWith(1);
    const { drain, log } = makeDrain(fake, done, { budget: budgetOf(1_000, 0, () => false) });
    expect(await drain.run()).toBe('failed');
    expect(fake.calls).toEqual([]);
    expect(log.lines.join()).toMatch(/timeout of 2000 ms .* raise WORKER_SECONDS/);
  });
});

describe('beforeunload', () => {
  test('finished work is saved, running work is released, and nothing more is claimed', async () => {
    const fake = fakeWith(3);
    const { drain } = makeDrain(fake, async (entity, { signal }) => {
      if (entity.id !== 2) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return done(entity);
    });
    const end = drain.run();
    await vi.waitFor(() => expect(fake.saved.has(2)).toBe(true));
    fake.queue = [makeItem(8)];
    drain.unload('wall_clock');
    expect(await end).toBe('unloaded');
    expect(fake.saved.get(1)).toEqual({ attempt: 1, token: makeItem(1).token, outcome: 'released' });
    expect(fake.saved.get(3)).toMatchObject({ outcome: 'released' });
    expect(fake.queue).toHaveLength(1);
  });

  test('a batch that arrives while the function is unloaded is released without starting it', async () => {
    const fake = fakeWith(1);
    fake.limits.batch_size = 1;
    const handler = vi.fn(done);
    const { drain } = makeDrain(fake, handler, { batchSize: 1 });
    fake.after = (name) => {
      if (name === 'millrace_claim') drain.unload('memory');
      return null;
    };
    expect(await drain.run()).toBe('unloaded');
    expect(handler).not.toHaveBeenCalled();
    expect(fake.saved.get(1)).toEqual({ attempt: 1, token: makeItem(1).token, outcome: 'released' });
  });

  /** The fate of the items that run when the platform ends the function for this reason. */
  async function unloadedFor(
    reason: string,
    items: Item[],
    { isolate, burning }: { isolate?: Isolate; burning?: (id: number) => void } = {},
  ) {
    const fake = new FakeEngine();
    fake.queue = [...items];
    let running = 0;
    const handler: TestHandler = ({ id }, { signal }) => {
      running += 1;
      burning?.(id);
      return new Promise((resolve) => signal.addEventListener('abort', resolve));
    };
    const { drain } = makeDrain(fake, handler, isolate && { isolate });
    const end = drain.run();
    await vi.waitFor(() => expect(running).toBe(items.length));
    drain.unload(reason);
    expect(await end).toBe('unloaded');
    return items.map(({ attempt }) => {
      const { attempt: _, token: __, ...outcome } = fake.saved.get(attempt) as OutcomeItem;
      return outcome;
    });
  }

  test.for(['cpu', 'memory'])('at the limit of %s, all that runs is released for it', async (limit) => {
    const outcomes = await unloadedFor(limit, [makeItem(1), makeItem(2)]);
    expect(outcomes).toEqual(Array(2).fill({ outcome: 'released', limit }));
  });

  test.for(['wall_clock', 'early_drop', 'termination', 'unknown'])(
    'the reason %s says nothing about what runs',
    async (reason) => {
      expect(await unloadedFor(reason, [makeItem(1)])).toEqual([{ outcome: 'released' }]);
    },
  );

  test('an isolated row is blamed for the CPU, unless the rows before it had worn the isolate out', async () => {
    const outcomes = [];
    for (const before of [100, 200]) {
      const isolate = new Isolate();
      isolate.begin(before);
      for (let row = 0; row < before; row++) isolate.end();
      outcomes.push(...(await unloadedFor('cpu', [makeItem(1, { isolated: true })], { isolate })));
    }
    expect(outcomes).toEqual([{ outcome: 'released', limit: 'cpu' }, { outcome: 'released' }]);
  });

  test('nobody is blamed for the CPU that many rows have used, nor anybody beside the one that was seen at it', async () => {
    const worn = new Isolate();
    worn.begin(200);
    expect(await unloadedFor('cpu', [makeItem(1), makeItem(2)], { isolate: worn })).toEqual(
      Array(2).fill({ outcome: 'released' }),
    );
    const burning = (id: number) => {
      const until = performance.now() + (id === 2 ? 450 : 0);
      while (performance.now() < until);
    };
    expect(await unloadedFor('cpu', [makeItem(1), makeItem(2)], { burning })).toEqual([
      { outcome: 'released' },
      { outcome: 'released', limit: 'cpu' },
    ]);
  });
});
