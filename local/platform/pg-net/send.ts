// One HTTP request as pg_net's libcurl makes it, and its outcome as a row of net._http_response.

import { Agent, type Dispatcher, request } from 'undici';
import { deadline } from '../deadline.ts';

type Method = 'GET' | 'POST' | 'DELETE';
type Headers = [name: string, value: string][];

export interface QueuedRequest {
  id: string;
  method: Method;
  url: string;
  headers: Record<string, string | null> | null;
  body: Buffer | null;
  timeout_milliseconds: number;
}

const unsupported = 'Unsupported protocol';
/** libcurl's own since 8.3. */
const maxRedirections = 30;
const messages: Record<string, string> = {
  ECONNREFUSED: "Couldn't connect to server",
  EHOSTUNREACH: "Couldn't connect to server",
  ENETUNREACH: "Couldn't connect to server",
  ENOTFOUND: "Couldn't resolve host name",
  EAI_AGAIN: "Couldn't resolve host name",
  ECONNRESET: 'Failure when receiving data from the peer',
  EPROTO: 'SSL connect error',
  ERR_SSL_WRONG_VERSION_NUMBER: 'SSL connect error',
  UND_ERR_SOCKET: 'Server returned nothing (no headers, no data)',
};

/** Returns a sender with connections of its own. `signal` ends what is under way. */
export function createSender(signal: AbortSignal) {
  const dispatcher = new Agent({ connections: null, headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 0 } });

  /** Sends a request. Never throws: the row says what went wrong. */
  async function send(queued: QueuedRequest): Promise<Record<string, unknown>> {
    const { id, timeout_milliseconds: timeout } = queued;
    const started = performance.now();
    const ending = timeout > 0 ? deadline(timeout, signal) : { signal, clear: () => {} };
    let first: Dispatcher.ResponseData | undefined;
    try {
      const last = await follow(queued, { dispatcher, signal: ending.signal }, (response) => {
        first ??= response;
      });
      // Postgres cannot store a NUL byte as text; the real pg_net stores what stands before it.
      const content = (await last.body.text()).split('\0', 1)[0];
      return {
        id,
        status_code: last.statusCode,
        content: content || null,
        // As in pg_net, the headers are those of the first answer, which may be a redirection. Of equal names the last one counts.
        headers: Object.fromEntries(headersOf(first ?? last)),
        content_type: headersOf(last).findLast(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? null,
        timed_out: false,
      };
    } catch (error) {
      if (ending.signal.reason?.name === 'TimeoutError') {
        const total = (performance.now() - started).toFixed(6);
        const steps = `DNS time: 0.000000 ms, TCP/SSL handshake time: 0.000000 ms, HTTP Request/Response time: ${total} ms`;
        const message = `Timeout of ${timeout} ms reached. Total time: ${total} ms (${steps})`;
        return { id, timed_out: true, error_msg: message };
      }
      return { id, timed_out: false, error_msg: errorMessage(error, first !== undefined) };
    } finally {
      ending.clear();
    }
  }

  return { send, close: () => dispatcher.destroy() };
}

/** Sends a request and those that the answers lead to; `seen` hears of each answer. Resolves to the last. */
async function follow(
  queued: QueuedRequest,
  options: { dispatcher: Dispatcher; signal: AbortSignal },
  seen: (response: Dispatcher.ResponseData) => void,
): Promise<Dispatcher.ResponseData> {
  const start = new URL(queued.url);
  let url = start;
  let { method, body } = queued;
  for (let redirections = 0; ; redirections += 1) {
    if (!/^https?:$/.test(url.protocol)) throw new Error(unsupported);
    const headers = requestHeaders(queued, url, url.origin === start.origin, body !== null).flat();
    const response = await request(url, { ...options, method, body, headers, responseHeaders: 'raw' });
    seen(response);
    const location = headersOf(response).find(([name]) => name.toLowerCase() === 'location')?.[1];
    if (location === undefined || response.statusCode < 300 || response.statusCode > 399) return response;
    if (redirections === maxRedirections) throw new Error('Number of redirects hit maximum amount');
    await response.body.dump();
    url = new URL(location, url);
    // Like libcurl, turns a POST into a GET; a DELETE stays a DELETE.
    if (method === 'POST' && response.statusCode < 304) {
      method = 'GET';
      body = null;
    }
  }
}

/** Pairs the headers, which `responseHeaders: 'raw'` gives as names and values in turn. */
function headersOf({ headers }: Dispatcher.ResponseData): Headers {
  const raw = headers as unknown as string[];
  return raw.flatMap((name, index): Headers => (index % 2 === 0 ? [[name, raw[index + 1] as string]] : []));
}

/** Headers that are not sent on to another host, since they may be secrets. */
const ofTheHost = ['authorization', 'cookie', 'host'];

function requestHeaders(queued: QueuedRequest, url: URL, isSameHost: boolean, hasBody: boolean): Headers {
  const given = Object.entries(queued.headers ?? {})
    .filter((header): header is Headers[number] => Boolean(header[1]))
    .filter(([name]) => isSameHost || !ofTheHost.includes(name.toLowerCase()));
  const has = (name: string) => given.some(([other]) => other.toLowerCase() === name);
  const login = [url.username, url.password].map(decodeURIComponent).join(':');
  return [
    ...(has('accept') ? [] : ([['Accept', '*/*']] as Headers)),
    ...given,
    ['User-Agent', 'pg_net/0.20.4'],
    ...(login === ':' || has('authorization')
      ? []
      : ([['Authorization', `Basic ${Buffer.from(login).toString('base64')}`]] as Headers)),
    ...(!hasBody || has('content-type') ? [] : ([['Content-Type', 'application/x-www-form-urlencoded']] as Headers)),
  ];
}

function errorMessage(error: unknown, hasAnswered: boolean): string {
  const { code, message, errors } = error as { code?: string; message: string; errors?: { code?: string }[] };
  if (hasAnswered && (code === 'UND_ERR_SOCKET' || message === 'terminated')) return 'Transferred a partial file';
  // The parser's error means that the answer is no HTTP.
  if (code?.startsWith('HPE_')) return unsupported;
  return messages[code ?? errors?.[0]?.code ?? ''] ?? message;
}
