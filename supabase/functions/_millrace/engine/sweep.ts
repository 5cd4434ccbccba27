import { waitUntil } from '../edge-runtime.ts';
import { messageOf } from '../errors.ts';
import type { Log } from '../log.ts';

/**
 * Sweeps in the background, one call at a time, when an answer of the engine says that the last sweep is over a minute
 * old: pg_cron, which calls it every ten seconds, is known to stall. The engine sees to it that only one of all who are
 * told so does the work. A failed sweep is not repeated: the next answer that finds the sweep late starts another.
 */
export function createSweeper(sweep: () => Promise<unknown>, log: Log): (answer: { sweep_due: boolean }) => void {
  let underway = false;
  return ({ sweep_due: due }) => {
    if (!due || underway) return;
    underway = true;
    const work = sweep()
      .catch((error) => log.warn('the sweep is late and could not be made up for', { error: messageOf(error) }))
      .finally(() => {
        underway = false;
      });
    waitUntil(work);
  };
}
