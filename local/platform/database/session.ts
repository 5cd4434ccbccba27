// A background worker's own database session, opened again whenever it breaks: a crash and restart of Postgres ends
// no worker.
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';

const reconnectMs = 200;
/** A server that is killed may leave a connection that nobody answers. */
export const connectionTimeoutMillis = 5000;

/** Waits `ms` milliseconds, or until the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}

/**
 * Runs `work` with a session at `url` until `signal` aborts, and again with a new session after each failure. `work` must
 * return soon after its own signal, which aborts when the session is lost too. Passes failures other than a lost session to `report`.
 */
export async function keepSession(
  url: string,
  applicationName: string,
  signal: AbortSignal,
  report: (message: string) => void,
  work: (client: pg.Client, over: AbortSignal) => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    const client = new pg.Client({
      connectionString: url,
      application_name: applicationName,
      keepAlive: true,
      connectionTimeoutMillis,
    });
    const lost = new AbortController();
    client.on('error', () => lost.abort());
    client.on('end', () => lost.abort());
    try {
      await client.connect();
      await work(client, AbortSignal.any([signal, lost.signal]));
    } catch (error) {
      if (!lost.signal.aborted && !signal.aborted && !isUnreachable(error)) report(String(error));
      await pause(reconnectMs, signal);
    } finally {
      await Promise.race([client.end().catch(() => {}), delay(connectionTimeoutMillis, undefined, { ref: false })]);
    }
  }
}

function isUnreachable(error: unknown): boolean {
  const code = (error as { code?: string }).code ?? '';
  // Refused or reset connections, and Postgres's own "starting up", "shutting down" and "terminated".
  return code.startsWith('E') || code.startsWith('57P') || /terminated/.test(String(error));
}
