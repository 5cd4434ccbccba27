import type { Platform } from '../engine/platform.ts';
import type { Isolate, Probe } from './isolate.ts';

const PROBE_TIMEOUT_MS = 5_000;

/**
 * Makes a probe of a function: it asks the function, as anybody else would, and looks whose answer comes.
 */
export function createProbe(options: { platform: Platform; functionName: string; isolate: Isolate }): Probe {
  const { platform, functionName, isolate } = options;
  return async () => {
    try {
      const answer = await fetch(`${platform.url}/functions/v1/${functionName}?host`, {
        headers: { apikey: platform.secretKey },
        // The key is for this project alone.
        redirect: 'manual',
        signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
      });
      const { host } = (await answer.json()) as { host?: string };
      return host === undefined ? undefined : host === isolate.host;
    } catch {
      return undefined;
    }
  };
}
