import { Buffer } from 'node:buffer';
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { JobOrigin } from '../engine/engine-contract.ts';
import { readSettings, webhookSettings } from '../settings.ts';
import type { Service } from '../stage/service.ts';
import type { HandlerContext } from '../stage/stage.ts';
import { jobOrigin } from './job-service.ts';

/**
 * Whose job a callback is about: the attempt it was submitted for, and the service that has it, '' where the callback names
 * none.
 */
export type CallbackOrigin = JobOrigin & { service: string };

const names = ['service', 'pipeline', 'stage', 'submission', 'trace_id', 'entity_id'] as const;

/**
 * The callback URL for a service that signs nothing: it carries our own signature, and says whose job is called back about,
 * so that the service need send nothing back but its answer. Throws a MisconfiguredError without WEBHOOK_SECRET.
 *
 * @example
 * ```ts
 * const carrier: Service = { name: 'carrier', readCallback: (body) => ({ jobId: z.string().parse(body) }) };
 *
 * await fetch('https://carrier.example.com/orders', {
 *   method: 'POST',
 *   body: JSON.stringify({ order: entity.id, notify: ownCallbackUrl(carrier, context) }),
 * });
 * ```
 */
export function ownCallbackUrl(service: Pick<Service, 'name'>, context: HandlerContext): string {
  const [secret = ''] = readSettings(webhookSettings, context.env).WEBHOOK_SECRET;
  return signedCallbackUrl(context.callbackUrl, { ...jobOrigin(context), service: service.name }, secret);
}

/**
 * Returns a callback URL for a service that signs nothing itself. The URL names its job and carries our signature of
 * it. A holder of the URL can report the end of that one attempt, once, and nothing else.
 *
 * `secret`: one of the secrets in WEBHOOK_SECRET.
 */
export function signedCallbackUrl(base: string, origin: CallbackOrigin, secret: string): string {
  const url = new URL(base);
  for (const name of names) url.searchParams.set(name, String(origin[name]));
  url.searchParams.set('signature', signatureOf(url, secret).toString('base64url'));
  return url.href;
}

/** True for a URL that signedCallbackUrl could have made: its own signature vouches for it. */
export function isOwnCallbackUrl(url: URL): boolean {
  return url.searchParams.has('service');
}

/** Returns the origin of a URL's job. Call callbackUrlFault() first: a URL with a fault may be forged. */
export function readOrigin(params: URLSearchParams): CallbackOrigin {
  return { ...writtenOrigin(params), submission: Number(params.get('submission')) };
}

/** Returns the parameters from which readOrigin() reads this origin. */
export function originParams(origin: CallbackOrigin): URLSearchParams {
  return new URLSearchParams(names.map((name) => [name, String(origin[name])]));
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

/** Signs no expiry: the engine refuses what comes for an attempt that is over. */
function signatureOf(url: URL, secret: string): Buffer {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return createHmac('sha256', key)
    .update(JSON.stringify(writtenOrigin(url.searchParams)))
    .digest();
}

/** Returns the URL's parameters as text, unparsed: the signature covers them in this form. */
function writtenOrigin(params: URLSearchParams): Record<(typeof names)[number], string> {
  const entries = names.map((name) => [name, params.get(name) ?? '']);
  return Object.fromEntries(entries);
}
