import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { WakeTarget } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import { ChildCollector } from '../../supabase/functions/_millrace/worker/collect-children.ts';
import { FakeEngine, failedAnswer, makeItem } from '../support/runtime/fake-engine.ts';
import { gate, keepLog, makeDrain } from '../support/runtime/make-drain.ts';

interface Answer {
  wake?: WakeTarget[];
  busy?: number[];
  collect?: number[];
}

/** A collector over an engine that answers each call by `answer`; `calls` are the fan-outs of each. */
function makeCollector(answer: (fanOuts: number[], call: number) => Answer | Promise<Answer>) {
  const calls: number[][] = [];
  const woken: WakeTarget[] = [];
  const log = keepLog();
  const collectChildren = async (fanOuts: number[]) => {
    calls.push(fanOuts);
    return { wake: [], busy: [], collect: [], ...(await answer(fanOuts, calls.length)) };
  };
  const collector = new ChildCollector({
    engine: { collectChildren },
    waker: { wake: (stages) => void woken.push(...stages) },
    log,
  });
  return { collector, calls, woken, log };
}

describe('collecting children', () => {
  test('wakes the stages that got work', async () => {
    const next = { pipeline: 'book', stage: 'toc', function: 'book-toc' };
    const { collector, calls, woken } = makeCollector(() => ({ wake: [next] }));
    collector.collectChildren([3]);
    await collector.settled();
    expect(calls).toEqual([[3]]);
    expect(woken).toEqual([next]);
  });

  test('has one call under way, and what is asked for meanwhile goes once with the next', async () => {
    const first = gate();
    const { collector, calls } = makeCollector(async (_, call) => {
      if (call === 1) await first.opened;
      return {};
    });
    collector.collectChildren([1]);
    collector.collectChildren([2, 3]);
    collector.collectChildren([3, 1]);
    expect(calls).toEqual([[1]]);
    first.open();
    await collector.settled();
    expect(calls).toEqual([[1], [2, 3, 1]]);
  });

  test('sends no more at a time than the engine takes', async () => {
    const { collector, calls } = makeCollector(() => ({}));
    collector.collectChildren(Array.from({ length: 230 }, (_, i) => i));
    await collector.settled();
    expect(calls.map((call) => call.length)).toEqual([100, 100, 30]);
  });

  test('goes on to the parents of parents', async () => {
    const { collector, calls } = makeCollector(([fanOut = 0]) => ({ collect: fanOut > 1 ? [fanOut - 1] : [] }));
    collector.collectChildren([3]);
    await collector.settled();
    expect(calls).toEqual([[3], [2], [1]]);
  });

  test('a call that fails is logged and left to the sweep, and the next is made all the same', async () => {
    const { collector, calls, log } = makeCollector((_, call) => {
      if (call === 1) throw new Error('the engine is down');
      return {};
    });
    collector.collectChildren([1]);
    collector.collectChildren([2]);
    await collector.settled();
    expect(calls).toEqual([[1], [2]]);
    expect(log.lines).toEqual([expect.stringMatching(/the sweep will do it .*\[1\].*the engine is down/)]);
  });

  test('ends although others go on reporting: that is for them to collect', async () => {
    const { collector, calls } = makeCollector(([fanOut = 0]) => ({ collect: [fanOut + 1] }));
    collector.collectChildren([1]);
    await collector.settled();
    expect(calls.length).toBeGreaterThan(3);
    expect(calls.length).toBeLessThan(20);
  });
});

describe('a parent that somebody holds', () => {
  beforeEach(() => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
  });
  const settle = async (collector: { settled(): Promise<void> }) => {
    const settled = collector.settled();
    await vi.advanceTimersByTimeAsync(5_000);
    await settled;
  };

  test('is tried again after a pause', async () => {
    const { collector, calls, log } = makeCollector((fanOuts, call) => ({ busy: call < 3 ? fanOuts : [] }));
    collector.collectChildren([7]);
    await vi.advanceTimersByTimeAsync(0);
    expect(calls).toHaveLength(1);
    await settle(collector);
    expect(calls).toEqual([[7], [7], [7]]);
    expect(log.lines).toEqual([]);
  });

  test('keeps no other waiting, and is not asked about in between', async () => {
    const { collector, calls } = makeCollector((fanOuts) => ({ busy: fanOuts.filter((fanOut) => fanOut === 7) }));
    collector.collectChildren([7]);
    await vi.advanceTimersByTimeAsync(1);
    collector.collectChildren([7, 8]);
    await vi.advanceTimersByTimeAsync(1);
    expect(calls).toEqual([[7], [8]]);
    await settle(collector);
  });

  test('is left to the sweep in the end, with a log line', async () => {
    const { collector, calls, log } = makeCollector((fanOuts) => ({ busy: fanOuts }));
    collector.collectChildren([7]);
    await settle(collector);
    expect(calls).toHaveLength(5);
    expect(log.lines).toEqual([expect.stringContaining('the sweep will add up its children {"fan_out":7}')]);
  });
});

describe('a drain', () => {
  const done = (entity: { id: number }) => ({ done: entity.id });

  test('collects what its answers name, without waiting for it before it claims again, but before it ends', async () => {
    const fake = new FakeEngine();
    fake.queue = Array.from({ length: 9 }, (_, i) => makeItem(i + 1));
    const collected = gate();
    const { rpc } = fake;
    const slow: typeof rpc = async (name, args, signal) => {
      if (name === 'millrace_collect_children') await collected.opened;
      return rpc(name, args, signal);
    };
    Object.assign(fake, { rpc: slow });
    fake.before = (name) => {
      if (name === 'millrace_complete') fake.collects = [4];
      return null;
    };
    let ended = false;
    const end = makeDrain(fake, done)
      .drain.run()
      .finally(() => {
        ended = true;
      });
    await vi.waitFor(() => expect(fake.callsOf('millrace_leave')).toHaveLength(1));
    expect(fake.saved.size).toBe(9);
    expect(ended).toBe(false);
    collected.open();
    expect(await end).toBe('empty');
    // The first call was under way when the others were asked for.
    expect(fake.callsOf('millrace_collect_children')).toEqual([{ p_fan_outs: [4] }, { p_fan_outs: [4] }]);
  });

  test('does not repeat a collection that fails, and ends as if nothing had happened', async () => {
    const fake = new FakeEngine();
    fake.queue = [makeItem(1)];
    fake.collects = [4];
    fake.before = (name) => (name === 'millrace_collect_children' ? failedAnswer(503) : null);
    const { drain, log } = makeDrain(fake, done);
    expect(await drain.run()).toBe('empty');
    expect(fake.callsOf('millrace_collect_children')).toHaveLength(1);
    expect(log.lines.join()).toContain('children were not added up, the sweep will do it');
  });
});
