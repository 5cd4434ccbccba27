import type { Engine } from '../engine/engine-client.ts';
import { messageOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Waker } from './wake.ts';

/** Has the engine add up, in the background, what children have reported to their parents. */
export interface ChildCollector {
  /** Folds these fan-outs soon; those that wait already are collected once. */
  collectChildren(fanOuts: number[]): void;
  /** Resolves when all that waits is collected, or left to the sweep. To be called once nothing more is given to `collect children`. */
  settled(): Promise<void>;
}

const MOST_AT_ONCE = 100;
const MOST_TRIES = 5;
const FIRST_BUSY_PAUSE_MS = 50;
// Others go on reporting while a worker ends: what they leave is for them to collect children.
const LAST_CALLS = 10;

/**
 * Folds one call at a time: what is asked for meanwhile goes with the next. A parent that somebody holds is tried again a few
 * times, and then left to the sweep, as is all of a call that fails.
 */
export function createChildCollector(options: {
  engine: Pick<Engine, 'collectChildren'>;
  waker: Pick<Waker, 'wake'>;
  log: Log;
}): ChildCollector {
  const { engine, waker, log } = options;
  const pending = new Set<number>();
  const pausing = new Map<number, Promise<void>>();
  const tries = new Map<number, number>();
  let underway: Promise<void> | null = null;
  let callsLeft = Infinity;

  function add(fanOuts: number[]): void {
    for (const fanOut of fanOuts) if (!pausing.has(fanOut)) pending.add(fanOut);
    if (pending.size > 0 && callsLeft > 0) underway ??= work();
  }

  async function work(): Promise<void> {
    for (; pending.size > 0 && callsLeft > 0; callsLeft--) {
      const batch = [...pending].slice(0, MOST_AT_ONCE);
      for (const fanOut of batch) pending.delete(fanOut);
      await foldBatch(batch);
    }
    underway = null;
  }

  async function foldBatch(batch: number[]): Promise<void> {
    try {
      const answer = await engine.collectChildren(batch);
      waker.wake(answer.wake);
      for (const fanOut of batch) {
        if (answer.busy.includes(fanOut)) tryLater(fanOut);
        else tries.delete(fanOut);
      }
      // A collect children may end a run that is itself a child.
      for (const fanOut of answer.collect) if (!pausing.has(fanOut)) pending.add(fanOut);
    } catch (error) {
      log.warn('children were not added up, the sweep will do it', { fan_outs: batch, error: messageOf(error) });
    }
  }

  function tryLater(fanOut: number): void {
    const tried = (tries.get(fanOut) ?? 0) + 1;
    if (tried >= MOST_TRIES) {
      tries.delete(fanOut);
      log.warn('a parent stays locked, the sweep will add up its children', { fan_out: fanOut });
      return;
    }
    tries.set(fanOut, tried);
    const pause = new Promise<void>((resolve) => setTimeout(resolve, FIRST_BUSY_PAUSE_MS * 2 ** (tried - 1)));
    const again = pause.then(() => {
      pausing.delete(fanOut);
      add([fanOut]);
    });
    pausing.set(fanOut, again);
  }

  return {
    collectChildren: add,
    async settled() {
      callsLeft = LAST_CALLS;
      while (underway || pausing.size > 0) await Promise.all([underway, ...pausing.values()]);
    },
  };
}
