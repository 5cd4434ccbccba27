import { z } from 'zod';
import { createEngine, dataApiRpc, type Engine, type Rpc } from '../engine/engine-client.ts';
import { type Platform, readPlatform, refuseWakeUp } from '../engine/platform.ts';
import { messageOf } from '../errors.ts';
import { createLog } from '../log.ts';
import { parseHosts } from '../public-hosts.ts';
import { refuse } from '../refuse.ts';
import { type Env, readSettings, workerSettings } from '../settings.ts';
import { type Budget, createBudget } from '../worker/budget.ts';
import { alertMessage } from './alert-message.ts';
import { type DeliveryOptions, deliverMessage } from './deliver-message.ts';

/** How long a receiver may take to answer before it is retried. */
const ANSWER_TIME_MS = 10_000;
const ROUND_TIME_MS = ANSWER_TIME_MS + 5_000;

const log = createLog({ function: 'millrace' });

/** Settings of this function, beside those of every worker. */
export const alertSettings = z.object({
  ALERT_ALLOW_HOSTS: z
    .string()
    .default('')
    .transform((text, context) => {
      try {
        return parseHosts(text);
      } catch (error) {
        context.addIssue({ code: 'custom', message: messageOf(error) });
        return z.NEVER;
      }
    })
    .describe('set the hosts, or host:port, by commas, that alerts may go to wherever they are, or remove it'),
});

/**
 * Answers a wake-up of the function that sends messages about alerts: 202 when it goes to work, 401 without the wake-up secret
 * or a secret key, 500 for a wrong setting.
 */
export function answerAlertsWakeUp(
  env: Env,
  background: (work: Promise<void>) => void,
  rpcFor: (platform: Platform) => Rpc = dataApiRpc,
  answerTimeMs = ANSWER_TIME_MS,
): (request: Request) => Promise<Response> {
  return async (request) => {
    try {
      const platform = readPlatform(env);
      const refusal = refuseWakeUp(request, platform);
      if (refusal) return refusal;
      const { ALERT_ALLOW_HOSTS } = readSettings(alertSettings, env);
      const budget = createBudget(readSettings(workerSettings, env).WORKER_SECONDS);
      const engine = createEngine({ rpc: rpcFor(platform), retryUntil: () => budget.savesUntil, log });
      const options = { allowed: ALERT_ALLOW_HOSTS, timeoutMs: answerTimeMs };
      background(sendUntilDone(engine, options, budget));
      return Response.json({ status: 'sending' }, { status: 202 });
    } catch (error) {
      log.error(messageOf(error));
      return refuse(500, 'misconfigured', messageOf(error));
    }
  };
}

async function sendUntilDone(engine: Engine, options: DeliveryOptions, budget: Pick<Budget, 'fits'>): Promise<void> {
  try {
    await sendAlerts(engine, options, budget);
  } catch (error) {
    log.error('sending ended early, the next wake-up goes on', { error: messageOf(error) });
  }
}

/**
 * Takes the messages that are due, sends them and records each delivery, until no message is due or the time is used.
 */
export async function sendAlerts(
  engine: Engine,
  options: DeliveryOptions,
  budget: Pick<Budget, 'fits'>,
): Promise<void> {
  while (budget.fits(ROUND_TIME_MS)) {
    const { messages } = await engine.takeMessages();
    if (messages.length === 0) return;
    await Promise.all(
      messages.map(async (message) => {
        const delivery = await deliverMessage(alertMessage(message), options);
        const { channel, webhook_id } = message;
        if (delivery.ok) log.info('a message about alerts was delivered', { channel, webhook_id });
        else log.warn('a message about alerts was not delivered', { channel, webhook_id, error: delivery.error });
        await engine.noteDeliveries([delivery]);
      }),
    );
  }
}
