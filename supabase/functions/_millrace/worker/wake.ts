import type { Engine } from '../engine/engine-client.ts';
import type { WakeTarget } from '../engine/engine-contract.ts';
import { type Platform, wakeHeaders } from '../engine/platform.ts';
import { messageOf } from '../errors.ts';
import type { Log } from '../log.ts';

const WAKE_TIMEOUT_MS = 2_000;

/** Wakes doorbells in the background. */
export interface Waker {
  wake(stages: WakeTarget[]): void;
  /** Resolves when every wake-up so far has been answered, or left to the database. */
  settled(): Promise<void>;
}

/**
 * Wakes functions over HTTP at once, since a wake-up through the database may take a second.
 * What fails is left to the database; what fails there too, to its next sweep.
 */
export function createWaker(options: { platform: Platform; engine: Pick<Engine, 'wake'>; log: Log }): Waker {
  const { platform, engine, log } = options;
  const underway = new Set<Promise<void>>();

  async function wakeOne(stage: WakeTarget): Promise<void> {
    try {
      const answer = await fetch(`${platform.url}/functions/v1/${stage.function}`, {
        method: 'POST',
        headers: { ...wakeHeaders(platform), 'content-type': 'application/json' },
        body: JSON.stringify({ pipeline: stage.pipeline, stage: stage.stage }),
        // The secret is for this project alone.
        redirect: 'manual',
        signal: AbortSignal.timeout(WAKE_TIMEOUT_MS),
      });
      await answer.body?.cancel();
      if (answer.ok) return;
      log.warn('a wake-up was refused, the database wakes instead', { woken: stage.function, status: answer.status });
    } catch (error) {
      log.warn('a wake failed, the database wakes instead', { woken: stage.function, error: messageOf(error) });
    }
    try {
      await engine.wake([{ pipeline: stage.pipeline, stage: stage.stage }]);
    } catch (error) {
      log.error('the database could not wake, its sweep will', { woken: stage.function, error: messageOf(error) });
    }
  }

  return {
    wake(stages) {
      for (const stage of stages) {
        const work: Promise<void> = wakeOne(stage).finally(() => underway.delete(work));
        underway.add(work);
      }
    },
    async settled() {
      while (underway.size > 0) await Promise.all(underway);
    },
  };
}
