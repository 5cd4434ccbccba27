import type { Engine } from '../engine/engine-client.ts';
import type { AgentLimits, ClaimedAttempt, NewTurn, Turn } from '../engine/engine-contract.ts';
import { LeaseLost } from '../errors.ts';

/** The state from which an agent's attempt goes on. */
export interface StageRun {
  turns: Turn[];
  limits: AgentLimits;
  /** Milliseconds since the first attempt of the stage run began. */
  elapsedMs: number;
}

/** The recorded conversation of one attempt of an agent. Both calls throw LeaseLost when the attempt was taken away. */
export interface Checkpoints {
  /** The turns that this attempt and those it retries have recorded, and the stage's limits of today. */
  load(): Promise<StageRun>;
  /** Records a turn; it is safe once this resolves. */
  append(turn: NewTurn): Promise<void>;
}

const FIRST_BUSY_PAUSE_MS = 50;
const LONGEST_BUSY_PAUSE_MS = 1_000;

/** Returns the conversation of the attempt `item`, which `worker` holds; aborting `signal` ends the wait for a busy row. */
export function createCheckpoints(options: {
  engine: Pick<Engine, 'turns' | 'checkpoint'>;
  worker: string;
  item: ClaimedAttempt;
  signal: AbortSignal;
}): Checkpoints {
  const { engine, worker, item, signal } = options;
  return {
    async load() {
      const answer = await engine.turns(worker, item);
      if (answer.status === 'stale') throw new LeaseLost(answer.reason);
      return { turns: answer.turns, limits: answer.limits, elapsedMs: answer.elapsed_ms };
    },
    async append(turn) {
      for (let pause = FIRST_BUSY_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_BUSY_PAUSE_MS)) {
        const answer = await engine.checkpoint(worker, item, [turn]);
        if (answer.status === 'stale') throw new LeaseLost(answer.reason);
        if (answer.status !== 'busy') return;
        // The transaction that holds the row may be ending this attempt: the handler's next turn would be in vain.
        signal.throwIfAborted();
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    },
  };
}
