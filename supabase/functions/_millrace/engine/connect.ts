import { z } from 'zod';
import { messageOf } from '../errors.ts';
import { refuse } from '../jobs/refuse.ts';
import { createLog } from '../log.ts';
import type { Env } from '../settings.ts';
import { dataApiRpc, type Rpc } from './engine-client.ts';
import { ownWakeSecret, readPlatform, refuseStranger } from './platform.ts';

const ANSWER_TIME_MS = 8_000;

const log = createLog({ function: 'millrace' });

/**
 * Answers whoever sets a project up, with a secret key of it: tells the database where this function runs and with what to wake
 * functions, both as they are seen here. 200 with the address and the wake-up that the database sends there, 401 for a stranger, 500 for a wrong setting, 503 where the
 * database does not answer.
 *
 * @example
 * ```ts
 * await fetch('https://ref.supabase.co/functions/v1/millrace/connect', { method: 'POST', headers: { apikey: secretKey } });
 * // { "project_url": "https://ref.supabase.co", "secret": "HMAC of the project's secret key", "wake_up": 7 }
 * ```
 */
export function answerConnect(
  env: Env,
  rpcFor: (platform: ReturnType<typeof readPlatform>) => Rpc = dataApiRpc,
): (request: Request) => Promise<Response> {
  return async (request) => {
    if (request.method !== 'POST') return refuse(405, 'method_not_allowed', 'Connect with POST.');
    let platform: ReturnType<typeof readPlatform>;
    try {
      platform = readPlatform(env);
    } catch (error) {
      log.error(messageOf(error));
      return refuse(500, 'misconfigured', messageOf(error));
    }
    const refusal = refuseStranger(request, platform);
    if (refusal) return refusal;
    try {
      const args = { p_project_url: platform.url, p_wake_secret: ownWakeSecret(platform) };
      const { data, error } = await rpcFor(platform)('millrace_connect', args, AbortSignal.timeout(ANSWER_TIME_MS));
      if (error) throw new Error(error.message);
      const secret = platform.wakeSecret ? 'MILLRACE_WAKE_SECRET' : 'an HMAC of the project’s secret key';
      const { wake_up } = z.object({ wake_up: z.number().nullable() }).parse(data);
      return Response.json({ project_url: platform.url, secret, wake_up });
    } catch (error) {
      const message = messageOf(error).replace(/\.$/, '');
      log.error('the database was not connected', { error: message });
      return refuse(503, 'engine_unavailable', `The database did not take it: ${message}. Push the migrations first.`);
    }
  };
}
