import { Buffer } from 'node:buffer';
import { createHash, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { sayFault } from '../alerts/say-alert.ts';
import { createEngine, dataApiRpc, type Engine, type Rpc } from '../engine/engine-client.ts';
import { type Platform, readPlatform } from '../engine/platform.ts';
import { messageOf } from '../errors.ts';
import { createLog } from '../log.ts';
import { refuse } from '../refuse.ts';
import { type Env, readSettings } from '../settings.ts';
import { addUpMetrics } from './add-up-metrics.ts';
import { writeMetrics } from './write-metrics.ts';

/** How long the database may take: longer than the Data API's own bound, so that its error is reported. */
const ASK_TIME_MS = 9_000;

const log = createLog({ function: 'millrace' });

/** Settings of this function. */
export const metricsSettings = z.object({
  METRICS_TOKEN: z
    .string()
    .min(16, 'has fewer than 16 characters')
    .describe('set a random text that your monitoring system shows, such as the output of: openssl rand -base64 32'),
});

/**
 * Answers with all metrics, as OpenMetrics where the request accepts it, else in Prometheus's text format. Answers a
 * path that ends with /health with 200 or 503, and the faults of the project.
 *
 * A request shows METRICS_TOKEN as a bearer token, or as the password of basic authentication. Answers 401 without the
 * token, 500 where it is not set, and 503 where the database does not answer.
 */
export function answerMetrics(
  env: Env,
  rpcFor: (platform: Platform) => Rpc = dataApiRpc,
): (request: Request) => Promise<Response> {
  return async (request) => {
    let engine: Engine;
    try {
      const platform = readPlatform(env);
      if (!showsToken(request, readSettings(metricsSettings, env).METRICS_TOKEN)) return refuseStranger();
      engine = createEngine({ rpc: rpcFor(platform), retryUntil: () => Date.now() + ASK_TIME_MS, log });
    } catch (error) {
      log.error(messageOf(error));
      return refuse(500, 'misconfigured', messageOf(error));
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return refuse(405, 'method_not_allowed', 'Ask for metrics with GET.');
    }
    const isHealth = /\/health\/?$/.test(new URL(request.url).pathname);
    try {
      return isHealth ? await answerHealth(engine) : await answerScrape(engine, request);
    } catch (error) {
      log.error('the engine did not answer', { error: messageOf(error) });
      return refuse(503, 'engine_unavailable', `The engine did not answer: ${messageOf(error)}`);
    }
  };
}

async function answerScrape(engine: Engine, request: Request): Promise<Response> {
  const wantsOpenMetrics = /application\/openmetrics-text/.test(request.headers.get('accept') ?? '');
  const body = writeMetrics(addUpMetrics(await engine.metrics()), wantsOpenMetrics ? 'openmetrics' : 'text');
  const type = wantsOpenMetrics ? 'application/openmetrics-text; version=1.0.0' : 'text/plain; version=0.0.4';
  return new Response(body, { headers: { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-store' } });
}

async function answerHealth(engine: Engine): Promise<Response> {
  const { faults, ...health } = await engine.health();
  const told = { ...health, faults: faults.map((fault) => sayFault(fault)) };
  return Response.json(told, { status: health.ok ? 200 : 503, headers: { 'cache-control': 'no-store' } });
}

/** As a bearer token, or as the password of basic authentication, whoever the user is. */
function showsToken(request: Request, token: string): boolean {
  const [scheme = '', shown = ''] = (request.headers.get('authorization') ?? '').split(/ +/, 2);
  if (/^bearer$/i.test(scheme)) return isSame(shown, token);
  if (!/^basic$/i.test(scheme)) return false;
  const decoded = Buffer.from(shown, 'base64').toString('utf8');
  return isSame(decoded.slice(decoded.indexOf(':') + 1), token);
}

/** Takes equally long for every text, so that its time tells nothing. */
function isSame(shown: string, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(shown), digest(token));
}

function refuseStranger(): Response {
  const message = 'Show METRICS_TOKEN as a bearer token, or as the password of basic authentication.';
  const answer = refuse(401, 'unauthorized', message);
  answer.headers.set('www-authenticate', 'Basic realm="millrace", charset="UTF-8"');
  return answer;
}
