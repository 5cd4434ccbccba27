import type { Engine } from '../engine/engine-client.ts';
import type { Ring } from '../engine/engine-contract.ts';
import { type Platform, ringHeaders } from '../engine/platform.ts';
import { messageOf } from '../errors.ts';
import type { Log } from '../log.ts';

const RING_TIMEOUT_MS = 2_000;

/** Rings doorbells in the background. */
export interface Ringer {
  ring(stages: Ring[]): void;
  /** Resolves when every ring so far has been answered, or left to the database. */
  settled(): Promise<void>;
}

/**
 * Rings functions over HTTP at once, since a ring through the database may take a second.
 * What fails is left to the database; what fails there too, to its next sweep.
 */
export function createRinger(options: { platform: Platform; engine: Pick<Engine, 'ring'>; log: Log }): Ringer {
  const { platform, engine, log } = options;
  const underway = new Set<Promise<void>>();

  async function ringOne(stage: Ring): Promise<void> {
    try {
      const answer = await fetch(`${platform.url}/functions/v1/${stage.function}`, {
        method: 'POST',
        headers: { ...ringHeaders(platform), 'content-type': 'application/json' },
        body: JSON.stringify({ pipeline: stage.pipeline, stage: stage.stage }),
        // The secret is for this project alone.
        redirect: 'manual',
        signal: AbortSignal.timeout(RING_TIMEOUT_MS),
      });
      await answer.body?.cancel();
      if (answer.ok) return;
      log.warn('a ring was refused, the database rings instead', { rung: stage.function, status: answer.status });
    } catch (error) {
      log.warn('a ring failed, the database rings instead', { rung: stage.function, error: messageOf(error) });
    }
    try {
      await engine.ring([{ pipeline: stage.pipeline, stage: stage.stage }]);
    } catch (error) {
      log.error('the database could not ring, its sweep will', { rung: stage.function, error: messageOf(error) });
    }
  }

  return {
    ring(stages) {
      for (const stage of stages) {
        const work: Promise<void> = ringOne(stage).finally(() => underway.delete(work));
        underway.add(work);
      }
    },
    async settled() {
      while (underway.size > 0) await Promise.all(underway);
    },
  };
}
