import { z } from 'zod';
import { messageOf } from '../errors.ts';
import { createLog } from '../log.ts';
import { parseJson } from '../parse-json.ts';
import { refuse } from '../refuse.ts';
import type { Env } from '../settings.ts';
import { dataApiRpc, type Rpc } from './engine-client.ts';
import { isFromEngine, ownWakeSecret, readPlatform, refuseStranger } from './platform.ts';

const ANSWER_TIME_MS = 8_000;
const REGISTER_AGAIN_MS = 60_000;

const log = createLog({ function: 'millrace' });

type Answer = (request: Request) => Promise<Response>;
type RpcFor = (platform: ReturnType<typeof readPlatform>) => Rpc;

/** `project_url`: where the database reaches the functions, if that is not the SUPABASE_URL that they see. */
const wanted = z.object({ project_url: z.url({ protocol: /^https?$/ }) }).partial();
/** Null from a database that had an address already. */
const connected = z.object({ wake_up: z.number().nullable() });

/**
 * Answers a request that connects the project, with a secret key of it: tells the database where this function runs and with what to
 * wake functions, both as they are seen here. A body may name another address. 200 with the address and the wake-up that the
 * database sends there, 400 for an address that is none, 401 for a stranger, 500 for a wrong setting, 503 where the database does
 * not answer.
 *
 * @example
 * ```ts
 * await fetch('https://ref.supabase.co/functions/v1/millrace/connect', { method: 'POST', headers: { apikey: secretKey } });
 * // { "project_url": "https://ref.supabase.co", "secret": "HMAC of the project's secret key", "wake_up": 7 }
 * ```
 */
export function answerConnect(env: Env, rpcFor: RpcFor = dataApiRpc): Answer {
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
    const asked = wanted.safeParse(parseJson((await request.text()) || '{}'));
    if (!asked.success) return refuse(400, 'bad_request', 'project_url must be an address with http:// or https://.');
    try {
      const args = { p_project_url: asked.data.project_url ?? platform.url, p_wake_secret: ownWakeSecret(platform) };
      const { data, error } = await rpcFor(platform)('millrace_connect', args, AbortSignal.timeout(ANSWER_TIME_MS));
      if (error) throw new Error(error.message);
      const secret = platform.wakeSecret ? 'MILLRACE_WAKE_SECRET' : 'an HMAC of the project’s secret key';
      const { wake_up } = connected.parse(data);
      return Response.json({ project_url: args.p_project_url, secret, wake_up });
    } catch (error) {
      const message = messageOf(error).replace(/\.$/, '');
      log.error('the database was not connected', { error: message });
      return refuse(503, 'engine_unavailable', `The database did not take it: ${message}. Push the migrations first.`);
    }
  };
}

/**
 * Lets the first request of an isolate connect a database that has no address, as that of a new preview branch. Address
 * and secret come from the function's environment and never from the request, so a stranger's request can write nothing
 * but the truth. A request of the engine proves that the database has an address. `answer` never waits for this. A
 * database that does not answer is tried again after a minute.
 *
 * @example
 * ```ts
 * const answer = registering(answerConnect(env), env, (work) => EdgeRuntime.waitUntil(work));
 *
 * await answer(new Request('https://ref.supabase.co/functions/v1/millrace/connect'));
 * ```
 */
export function registering(
  answer: Answer,
  env: Env,
  background: (work: Promise<void>) => void,
  rpcFor: RpcFor = dataApiRpc,
): Answer {
  let due = 0;
  return (request) => {
    if (Date.now() >= due && !isFromEngine(request)) {
      due = Date.now() + REGISTER_AGAIN_MS;
      background(
        register(env, rpcFor).then((isDone) => {
          if (isDone) due = Number.POSITIVE_INFINITY;
        }),
      );
    }
    return answer(request);
  };
}

/** Resolves to whether the database has an address now. */
async function register(env: Env, rpcFor: RpcFor): Promise<boolean> {
  try {
    const platform = readPlatform(env);
    const args = { p_project_url: platform.url, p_wake_secret: ownWakeSecret(platform), p_once: true };
    const { data, error } = await rpcFor(platform)('millrace_connect', args, AbortSignal.timeout(ANSWER_TIME_MS));
    if (error) throw new Error(error.message);
    if (data) log.info('the database had no address and has this one now', { project_url: platform.url });
    return true;
  } catch (error) {
    log.warn('the database was not asked whether it has an address', { error: messageOf(error) });
    return false;
  }
}
