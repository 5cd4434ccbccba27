import { Webhook } from 'standardwebhooks';
import { deliverCallback } from './deliver-callback.ts';

/** One signed message: where it goes, its id (the same at every try) and what it says. */
export interface SignedCallback {
  url: string;
  id: string;
  payload: unknown;
  secrets: Webhook[];
}

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
 * `delaysMs` are the pauses between tries. Resolves to whether the receiver accepted it; never rejects.
 */
export async function deliverSigned(callback: SignedCallback, delaysMs: number[], stop: AbortSignal): Promise<boolean> {
  const { url, id, secrets } = callback;
  const body = JSON.stringify(callback.payload);
  const headers = () => {
    const now = new Date();
    return {
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': secrets.map((secret) => secret.sign(id, now, body)).join(' '),
    };
  };
  return deliverCallback({ url, body, headers }, delaysMs, stop);
}
