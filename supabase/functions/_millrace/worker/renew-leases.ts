import type { Engine } from '../engine/engine-client.ts';
import { messageOf } from '../errors.ts';
import type { Log } from '../log.ts';

// The engine counts a worker as alive for 15 s after its last call.
const LONGEST_INTERVAL_MS = 5_000;

/**
 * Renews a worker's heartbeat and leases on a timer until the returned function is called: every five seconds, or each
 * third of a lease if that is shorter. `onLost` gets the `unfinished` attempts whose leases are lost.
 */
export function renewLeases(options: {
  engine: Pick<Engine, 'renew'>;
  worker: string;
  leaseMs: number;
  log: Log;
  unfinished(): number[];
  onLost(attempts: number[]): void;
}): () => void {
  const interval = Math.min(options.leaseMs / 3, LONGEST_INTERVAL_MS);
  let stopped = false;
  let timer = setTimeout(renew, interval);

  async function renew(): Promise<void> {
    try {
      const { lost } = await options.engine.renew(options.worker, options.unfinished());
      if (!stopped && lost.length > 0) options.onLost(lost);
    } catch (error) {
      options.log.warn('leases could not be renewed, trying again', { error: messageOf(error) });
    }
    if (!stopped) timer = setTimeout(renew, interval);
  }

  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
