import { type Engine, EngineRefusal } from '../engine/engine-client.ts';
import type { ChildItem, ClaimedAttempt, WakeTarget } from '../engine/engine-contract.ts';
import { LeaseLost, PermanentError, RetriableError } from '../errors.ts';

/** The children of one attempt of a map. */
export interface Children {
  /**
   * Starts runs for a chunk of items, and resolves to the fan-out's number. Skips items that have a run already, and
   * waits for locked rows. After `last` no chunk can follow. Throws LeaseLost when the attempt was taken away, and a
   * PermanentError or RetriableError when the engine refuses the items.
   */
  spawn(items: ChildItem[], last: boolean): Promise<number>;
}

const FIRST_BUSY_PAUSE_MS = 50;
const LONGEST_BUSY_PAUSE_MS = 1_000;

/** Returns the children of the attempt `item`, which `worker` holds; aborting `signal` ends the wait for a busy row. */
export function createChildren(options: {
  engine: Pick<Engine, 'spawn'>;
  waker: { wake(targets: WakeTarget[]): void };
  worker: string;
  item: ClaimedAttempt;
  signal: AbortSignal;
}): Children {
  const { engine, waker, worker, item, signal } = options;

  async function call(items: ChildItem[], last: boolean) {
    try {
      return await engine.spawn(worker, item, items, last);
    } catch (error) {
      throw error instanceof EngineRefusal ? refused(error) : error;
    }
  }

  return {
    async spawn(items, last) {
      let left = items;
      for (let pause = FIRST_BUSY_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_BUSY_PAUSE_MS)) {
        const answer = await call(left, last);
        if (answer.status === 'stale') throw new LeaseLost(answer.reason);
        waker.wake(answer.wake);
        if (answer.status === 'spawned') return answer.fan_out;
        const busy = new Set(answer.busy);
        // Without keys the parent is locked, and the engine has done nothing.
        if (busy.size > 0) left = left.filter(({ key }) => busy.has(String(key)));
        // The transaction that holds the row may be ending this attempt: further items would be in vain.
        signal.throwIfAborted();
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    },
  };
}

/** Returns a permanent error for items that the engine or Postgres can never take, and a retriable one for other errors. */
function refused(error: EngineRefusal): PermanentError | RetriableError {
  if (/^(MR|22)/.test(error.code ?? '')) return new PermanentError('children_refused', error.message);
  return new RetriableError('spawn_failed', 'The items could not be handed over just now.', undefined, error.message);
}
