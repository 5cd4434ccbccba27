import { answerAlertsWakeUp } from './alerts/send-alerts.ts';
import { serve, waitUntil } from './edge-runtime.ts';
import { answerConnect, registering } from './engine/connect.ts';
import { answerCallback } from './jobs/answer-callback.ts';
import { answerPollWakeUp } from './jobs/poll-jobs.ts';
import { answerMetrics } from './metrics/serve-metrics.ts';
import { refuse } from './refuse.ts';
import { type Env, processEnv } from './settings.ts';
import { answerTracesWakeUp } from './traces/send-traces.ts';

type Answer = (request: Request) => Promise<Response>;

/** Serves the function millrace, which does whatever belongs to no stage. It is all that its index.ts calls. */
export function serveMillrace(): void {
  const env = processEnv();
  serve(registering(answerMillrace(env, waitUntil), env, waitUntil));
}

/**
 * Answers a request by the last part of its address. `callback`: the end of a service's job. `poll`, `alerts`, `traces`: wake-ups
 * by the database. `metrics`, `health`: a monitoring system. `connect`: a person or script that sets the project up.
 * Any other: 404.
 *
 * @example
 * ```ts
 * const answer = answerMillrace(env, (work) => EdgeRuntime.waitUntil(work));
 *
 * await answer(new Request('https://ref.supabase.co/functions/v1/millrace/poll', { method: 'POST', headers }));
 * ```
 */
export function answerMillrace(env: Env, background: (work: Promise<void>) => void): Answer {
  const routes: Record<string, Answer> = {
    callback: answerCallback(env),
    poll: answerPollWakeUp(env, background),
    alerts: answerAlertsWakeUp(env, background),
    traces: answerTracesWakeUp(env, background),
    metrics: answerMetrics(env),
    health: answerMetrics(env),
    connect: answerConnect(env),
  };
  return async (request) => {
    const name = new URL(request.url).pathname.replace(/\/+$/, '').split('/').at(-1) ?? '';
    const answer = Object.hasOwn(routes, name) ? routes[name] : undefined;
    if (answer) return answer(request);
    const known = Object.keys(routes).map((route) => `/${route}`);
    return refuse(404, 'unknown_route', `Function millrace has ${known.join(', ')}: correct the address.`);
  };
}
