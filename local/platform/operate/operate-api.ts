// Opens the operator's page on one's own machine. It keeps the secret key on its side: a browser shows a link's token once and
// has a cookie from then on, by which it calls the functions for operators and nothing else, in one operator's name.
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type http from 'node:http';
import { reply } from '../gateway/reply.ts';
import { urlOf } from '../gateway/url-of.ts';

/** Where the page stands; the cookie is shown below it alone. */
const place = '/operate';
const lifetimeSeconds = 12 * 3600;
const mostBytes = 300_000;
/** The answer to a browser without a cookie, or with one of a server that has ended since. */
const noSession = {
  message: 'This server does not know this browser: the server was started anew, or the session is over.',
  hint: 'Open the link that its terminal printed, or get a new one with npx millrace open.',
};
const functions =
  /^millrace_(overview|pipeline|series|runs|run|attempt|dead_letters|alerts|journal|search|limits|status|settings|costs|touched|act)$/;

export interface OperateApiOptions {
  /** The address of the server that asks the API, such as http://127.0.0.1:54321. */
  address: string;
  /** The project's address. */
  projectUrl: string;
  /** The headers of requests to the project: a secret key, or a user's token beside a publishable key. */
  headers: Record<string, string>;
  /** The operator for whom the page acts with a secret key. */
  operator: string;
}

export interface OperateApi {
  /** An address that opens the page in one browser, once. */
  link(): string;
  /** Answers what is below /operate/api/; returns false for anything else. */
  handle(request: http.IncomingMessage, response: http.ServerResponse): Promise<boolean>;
}

export function createOperateApi(options: OperateApiOptions): OperateApi {
  const { port, host } = new URL(options.address);
  const hosts = new Set([host, `localhost:${port}`]);
  const links = new Set<string>();
  const sessions = new Map<string, number>();
  // Cookies know no ports.
  const cookie = `millrace_operate_${port}`;

  function isOpen(request: http.IncomingMessage): boolean {
    const shown = new RegExp(`(?:^|; )${cookie}=([\\w-]+)`).exec(request.headers.cookie ?? '')?.[1] ?? '';
    const until = [...sessions].find(([token]) => isSame(token, shown))?.[1] ?? 0;
    return until > Date.now();
  }

  /** Takes a link's token, which is good for nothing after that. */
  function enter(response: http.ServerResponse, shown: unknown): void {
    const link = [...links].find((token) => isSame(token, String(shown)));
    if (!link) {
      reply(response, 403, {
        message: 'This link was used before, or is none of this server.',
        hint: 'Ask for a new one where you started it.',
      });
      return;
    }
    links.delete(link);
    const token = randomBytes(32).toString('base64url');
    sessions.set(token, Date.now() + lifetimeSeconds * 1000);
    response.setHeader(
      'set-cookie',
      `${cookie}=${token}; Path=${place}; Max-Age=${lifetimeSeconds}; HttpOnly; SameSite=Strict`,
    );
    reply(response, 200, {});
  }

  function leave(response: http.ServerResponse): void {
    sessions.clear();
    response.setHeader('set-cookie', `${cookie}=; Path=${place}; Max-Age=0; HttpOnly; SameSite=Strict`);
    reply(response, 200, {});
  }

  async function answer(name: string, request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    if (!hosts.has(request.headers.host ?? ''))
      return reply(response, 403, { message: 'This is no name of this machine.' });
    if (name === 'session' && request.method === 'GET')
      return reply(response, 200, isOpen(request) ? { operator: options.operator, project: options.projectUrl } : {});
    if (request.method !== 'POST' || request.headers.origin !== `http://${request.headers.host}`) {
      return reply(response, 403, { message: 'Only the page itself may ask this.' });
    }
    const body = await readJson(request);
    if (!body) return reply(response, 400, { message: 'This is no JSON, or too much of it.' });
    if (name === 'enter') return enter(response, body.token);
    if (!isOpen(request)) return reply(response, 401, noSession);
    if (name === 'leave') return leave(response);
    if (!functions.test(name)) return reply(response, 404, { message: 'There is no such function for operators.' });
    await forward(options, name, body, response);
  }

  return {
    link() {
      const token = randomBytes(32).toString('base64url');
      links.add(token);
      return `${options.address}${place}/#enter=${token}`;
    },
    async handle(request, response) {
      const name = new RegExp(`^${place}/api/(\\w+)$`).exec(urlOf(request)?.pathname ?? '')?.[1];
      if (name === undefined) return false;
      await answer(name, request, response);
      return true;
    },
  };
}

/** Compares two tokens in a time that tells nothing of them. */
function isSame(a: string, b: string): boolean {
  const [one, other] = [Buffer.from(a), Buffer.from(b)];
  return one.length === other.length && timingSafeEqual(one, other);
}

async function readJson(request: http.IncomingMessage): Promise<Record<string, unknown> | undefined> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > mostBytes) return undefined;
    parts.push(part);
  }
  try {
    const body = JSON.parse(Buffer.concat(parts).toString('utf8'));
    return body !== null && typeof body === 'object' ? body : undefined;
  } catch {
    return undefined;
  }
}

/** Calls a function with the key. Overwrites the name of the operator that the page sent. */
async function forward(
  { projectUrl, headers, operator }: OperateApiOptions,
  name: string,
  body: Record<string, unknown>,
  response: http.ServerResponse,
): Promise<void> {
  const asked =
    name === 'millrace_act'
      ? { p_request: { ...(body.p_request as object), operator } }
      : { p_query: body.p_query ?? {} };
  const answered = await fetch(`${projectUrl}/rest/v1/rpc/${name}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', 'content-profile': 'public' },
    body: JSON.stringify(asked),
    signal: AbortSignal.timeout(20_000),
  }).catch(() => undefined);
  if (!answered)
    return reply(response, 502, {
      message: 'The project does not answer.',
      hint: 'Look at its address and your connection.',
    });
  const text = await answered.text();
  // The page's own 401 is the API's; one of the project means its key.
  response.writeHead(answered.status === 401 ? 502 : answered.status, { 'content-type': 'application/json' });
  response.end(text);
}
