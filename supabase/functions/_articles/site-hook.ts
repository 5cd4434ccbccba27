import { Webhook } from 'standardwebhooks';
import { z } from 'zod';
import {
  errorFromStatus,
  type HandlerContext,
  messageOf,
  RetriableError,
  readSettings,
  type Traced,
  traceHeaders,
} from '../_millrace/mod.ts';
import { refusalText } from '../_services/refusal-text.ts';

/** Where the site hears of publications. */
export const siteHookSettings = z.object({
  SITE_HOOK_URL: z
    .url({ protocol: /^https?$/, error: 'must be a URL that begins with http:// or https://' })
    .optional()
    .describe('set the URL that the site is told of publications at, or remove it'),
});

const signingSettings = z.object({
  SITE_HOOK_SECRET: z
    .string()
    .regex(/^(?:whsec_)?[A-Za-z0-9+/]{32,}={0,2}$/, 'is not whsec_ and base64 of 24 bytes')
    .describe('set whsec_ followed by the output of: openssl rand -base64 32'),
});

/** A message to the site. Repeated deliveries of a message have the same `id`. */
export interface SiteMessage {
  id: string;
  type: string;
  data: object;
}

/**
 * Tells the site, signed as Standard Webhooks says; false where no SITE_HOOK_URL is set. Throws a StageError: all but a wrong
 * setting is worth another try, since the publication stands whatever the site says.
 */
export async function tellSite(
  { id, type, data }: SiteMessage,
  { env, signal, ...traced }: Pick<HandlerContext, 'env' | 'signal'> & Traced,
): Promise<boolean> {
  const { SITE_HOOK_URL: url } = readSettings(siteHookSettings, env);
  if (url === undefined) return false;
  const { SITE_HOOK_SECRET: secret } = readSettings(signingSettings, env);
  const now = new Date();
  const body = JSON.stringify({ type, timestamp: now.toISOString(), data });
  const headers = {
    ...traceHeaders(traced),
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, now, body),
  };
  const answer = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' }).catch((error) => {
    signal.throwIfAborted();
    throw new RetriableError(
      'site_unreachable',
      'The site at SITE_HOOK_URL cannot be reached.',
      undefined,
      messageOf(error),
    );
  });
  if (answer.ok) {
    await answer.body?.cancel();
    return true;
  }
  const { message, retryAfterMs } = errorFromStatus(answer.status, answer.headers, 'The site at SITE_HOOK_URL');
  throw new RetriableError('site_refused', message, retryAfterMs, await refusalText(answer));
}
