import { Buffer } from 'node:buffer';
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { JobOrigin } from './engine-contract.ts';

/** What a callback URL says of its job: which service has it, and which attempt it was submitted for. */
export type CallbackOrigin = JobOrigin & { service: string };

const names = ['service', 'pipeline', 'stage', 'submission', 'trace_id', 'entity_id'] as const;

/**
 * A URL for a service that signs nothing itself: it says which job it is for, and carries our own signature of that.
 * Whoever holds it can report the end of that one attempt, once, and nothing else. `secret` as in WEBHOOK_SECRET.
 */
export function signedCallbackUrl(base: string, origin: CallbackOrigin, secret: string): string {
  const url = new URL(base);
  for (const name of names) url.searchParams.set(name, String(origin[name]));
  url.searchParams.set('signature', signatureOf(url, secret).toString('base64url'));
  return url.href;
}

/** True for a URL that signedCallbackUrl could have made: it is to be judged by its own signature. */
export function isOwnCallbackUrl(url: URL): boolean {
  return url.searchParams.has('service');
}

/** What such a URL says, word for word: nobody has vouched for it before callbackUrlFault finds none. */
export function callbackOrigin({ searchParams }: URL): Record<(typeof names)[number], string | null> {
  const entries = names.map((name) => [name, searchParams.get(name)]);
  return Object.fromEntries(entries);
}

/** Checks the signature of such a URL against each secret, so that secrets can be exchanged without a gap. */
export function callbackUrlFault(url: URL, secrets: string[]): string | null {
  const shown = Buffer.from(url.searchParams.get('signature') ?? '', 'base64url');
  for (const secret of secrets) {
    const signature = signatureOf(url, secret);
    if (shown.length === signature.length && timingSafeEqual(shown, signature)) return null;
  }
  return 'The signature in the URL does not fit the rest of it';
}

/** No expiry is signed: the engine refuses what comes for an attempt that is over. */
function signatureOf(url: URL, secret: string): Buffer {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return createHmac('sha256', key)
    .update(JSON.stringify(callbackOrigin(url)))
    .digest();
}
