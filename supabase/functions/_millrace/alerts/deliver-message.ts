import { Webhook } from 'standardwebhooks';
import type { Delivery } from '../engine/alert-contract.ts';
import { classifyNetworkError, excerpt, retryAfterMs } from '../errors.ts';
import { hostOf, privateAddressOf, type Resolve, systemResolve } from '../public-hosts.ts';
import type { AlertMessage } from './alert-message.ts';
import { emailBody, slackBody, webhookBody } from './render-message.ts';

/** How receivers are reached. */
export interface DeliveryOptions {
  /** Hosts that may be reached wherever they are, and without TLS; others must be on the public internet. */
  allowed: Set<string>;
  /** How long one receiver may take to answer. */
  timeoutMs: number;
  resolve?: Resolve;
}

/** A request to a receiver. */
interface Post {
  url: URL;
  headers: Record<string, string>;
  body: string;
}

/** The error of a message that cannot be sent; its text names no address, which may be a secret. `permanent`: no retry helps. */
class NotSent extends Error {
  constructor(
    message: string,
    readonly permanent: boolean,
  ) {
    super(message);
  }
}

const LONGEST_REASON = 300;
/** How many characters of an answer are read: more than are reported, so that no secret is cut in two before it is removed. */
const LONGEST_READ = 4000;
/** A shorter part of an address, such as `/` or `api`, is no secret: removing it everywhere would tear words apart. */
const SHORTEST_SECRET = 4;
/** Statuses after which a retry may succeed. After any other status below 500 a retry gets the same answer. */
const passing = [408, 409, 425, 429];

/** Sends a message by its channel once, and says what came of it. Never throws. */
export async function deliverMessage(message: AlertMessage, options: DeliveryOptions): Promise<Delivery> {
  const about = { message: message.message, try: message.try };
  try {
    const post = postOf(message);
    await refusePrivate(post.url, options);
    return { ...about, ...(await send(post, options)) };
  } catch (error) {
    if (error instanceof NotSent) return { ...about, ok: false, error: error.message, permanent: error.permanent };
    const known = classifyNetworkError(error);
    return { ...about, ok: false, error: known?.message ?? 'The receiver could not be asked.', permanent: false };
  }
}

async function send(
  { url, headers, body }: Post,
  { timeoutMs }: DeliveryOptions,
): Promise<Omit<Delivery, 'message' | 'try'>> {
  const signal = AbortSignal.timeout(timeoutMs);
  // A redirect is not followed: it might lead into a private network, and a signed message is for its receiver alone.
  const answer = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' });
  const { status } = answer;
  if (answer.ok) {
    await answer.body?.cancel();
    return { ok: true, status };
  }
  const isRedirect = status >= 300 && status < 400;
  const said = withoutSecrets(await beginningOf(answer), url, headers);
  const remedy = isRedirect ? ', which leads elsewhere: enter the address where it leads' : '';
  const wait = retryAfterMs(answer.headers);
  return {
    ok: false,
    status,
    error: `The receiver answered ${status}${remedy || (said && `: ${excerpt(said, LONGEST_REASON).trim()}`)}`,
    permanent: status < 500 && !passing.includes(status),
    ...(wait !== undefined && { retry_after_ms: wait }),
  };
}

/** Reads the beginning of an answer's text, and then stops the transfer. */
async function beginningOf(answer: Response): Promise<string> {
  const reader = answer.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  try {
    while (reader && text.length < LONGEST_READ) {
      const { value, done } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
    await reader?.cancel();
  } catch {
    // Without the text, the status alone gives the reason.
  }
  return text;
}

/** Removes the key from a text, or without a key the address's parts: receivers repeat what they were sent. */
function withoutSecrets(text: string, url: URL, { authorization }: Record<string, string>): string {
  const path = [url.pathname + url.search, url.pathname, ...url.pathname.split('/'), ...url.searchParams.values()];
  const parts = authorization ? [authorization.slice('Bearer '.length)] : path;
  const secrets = parts.filter((part) => part.length >= SHORTEST_SECRET).flatMap((part) => [part, decoded(part)]);
  return secrets.sort((a, b) => b.length - a.length).reduce((rest, secret) => rest.replaceAll(secret, '…'), text);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function postOf(message: AlertMessage): Post {
  const { kind, channel, webhook_id: id } = message;
  const address = message.address?.trim();
  if (!address) throw missing(channel, 'address');
  const json = { 'content-type': 'application/json', 'user-agent': 'MillraceAlerts/1.0' };
  if (kind === 'slack') return { url: urlOf(address, channel), headers: json, body: slackBody(message) };
  const secret = message.secret?.trim();
  if (!secret) throw missing(channel, 'secret');
  if (kind === 'email') {
    const to = address.split(',').map((part) => part.trim());
    const headers = { ...json, authorization: `Bearer ${secret}`, 'idempotency-key': id };
    return { url: urlOf(message.api_url, channel), headers, body: emailBody(message, to) };
  }
  const body = webhookBody(message);
  const now = new Date();
  const headers = {
    ...json,
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': sign(secret, channel, id, now, body),
  };
  return { url: urlOf(address, channel), headers, body };
}

function sign(secret: string, channel: string, id: string, at: Date, body: string): string {
  try {
    return new Webhook(secret).sign(id, at, body);
  } catch {
    throw new NotSent(`Vault’s millrace_channel_${channel}_secret is not whsec_ and base64: correct it.`, false);
  }
}

/** Returns the error of a missing secret in Vault. It is not permanent, since an operator may be about to set the secret. */
function missing(channel: string, what: string): NotSent {
  const name = `millrace_channel_${channel}_${what}`;
  return new NotSent(`Vault has no ${name}: select vault.create_secret('…', '${name}').`, false);
}

function urlOf(address: string, channel: string): URL {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return url;
  throw new NotSent(`The address of channel ${channel} is no web address: it must begin with https://.`, false);
}

async function refusePrivate(url: URL, { allowed, resolve = systemResolve }: DeliveryOptions): Promise<void> {
  const { host, allowed: isAllowed } = hostOf(url, allowed);
  if (isAllowed) return;
  if (url.protocol !== 'https:') {
    throw new NotSent(
      'The address begins with http://: enter one with https://, or list its host in ALERT_ALLOW_HOSTS.',
      true,
    );
  }
  if ((await privateAddressOf(host, resolve)) === null) return;
  throw new NotSent(
    'The address is not on the public internet: correct it, or list its host in ALERT_ALLOW_HOSTS to allow it.',
    true,
  );
}
