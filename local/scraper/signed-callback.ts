import { setTimeout as pause } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { within } from './deadline.ts';

/** One signed message: where it goes, its id (the same at every try) and what it says. */
export interface SignedCallback {
  url: string;
  id: string;
  payload: unknown;
  secrets: Webhook[];
}

const tryTimeoutMs = 10_000;

/**
 * Reads the signing secrets from a WEBHOOK_SECRET value: one, or several parted by blanks or commas while they rotate.
 * Returns an empty list when it is unset; throws when one cannot be used.
 */
export function readWebhookSecrets(value: string | undefined): Webhook[] {
  const secrets = (value ?? '').split(/[\s,]+/).filter(Boolean);
  return secrets.map((secret) => {
    try {
      return new Webhook(secret);
    } catch (cause) {
      throw new Error(
        'WEBHOOK_SECRET is not base64 text: make one with `openssl rand -base64 32`, "whsec_" may precede it',
        {
          cause,
        },
      );
    }
  });
}

/**
 * Posts a Standard Webhooks message, signed afresh at every try, until the receiver answers 2xx.
 * `delaysMs` are the pauses between tries. Resolves to whether it was delivered; never rejects.
 */
export async function deliverSigned(callback: SignedCallback, delaysMs: number[], stop: AbortSignal): Promise<boolean> {
  const body = JSON.stringify(callback.payload);
  for (let tries = 0; !stop.aborted; tries++) {
    if (await postOnce(callback, body, stop)) return true;
    const delay = delaysMs[tries];
    if (delay === undefined) return false;
    await pause(delay, undefined, { signal: stop, ref: false }).catch(() => {});
  }
  return false;
}

async function postOnce(callback: SignedCallback, body: string, stop: AbortSignal): Promise<boolean> {
  const now = new Date();
  const headers = {
    'content-type': 'application/json',
    'webhook-id': callback.id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': callback.secrets.map((secret) => secret.sign(callback.id, now, body)).join(' '),
  };
  try {
    return await within(tryTimeoutMs, stop, async (signal) => {
      const response = await fetch(callback.url, { method: 'POST', redirect: 'manual', signal, headers, body });
      await response.body?.cancel();
      return response.ok;
    });
  } catch {
    return false;
  }
}
