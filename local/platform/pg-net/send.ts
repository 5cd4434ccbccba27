// One HTTP request as pg_net's libcurl makes it, and its outcome as a row of net._http_response.

import { Agent, interceptors, request } from 'undici';
import { deadline } from '../deadline.ts';

export interface QueuedRequest {
  id: string;
  method: 'GET' | 'POST' | 'DELETE';
  url: string;
  headers: Record<string, string | null> | null;
  body: Buffer | null;
  timeout_milliseconds: number;
}

const maxRedirections = 50;
const messages: Record<string, string> = {
  ECONNREFUSED: "Couldn't connect to server",
  EHOSTUNREACH: "Couldn't connect to server",
  ENETUNREACH: "Couldn't connect to server",
  ENOTFOUND: "Couldn't resolve host name",
  EAI_AGAIN: "Couldn't resolve host name",
  ECONNRESET: 'Failure when receiving data from the peer',
  UND_ERR_SOCKET: 'Server returned nothing (no headers, no data)',
};

/** A sender with connections of its own. `signal` ends what is under way. */
export function createSender(signal: AbortSignal) {
  const agent = new Agent({ connections: null, headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 0 } });
  const dispatcher = agent.compose(interceptors.redirect({ maxRedirections }));

  /** Sends a request. Never throws: the row says what went wrong. */
  async function send(queued: QueuedRequest): Promise<Record<string, unknown>> {
    const { id, method, url, body, timeout_milliseconds: timeout } = queued;
    const started = performance.now();
    const ending = deadline(Math.max(timeout, 1), signal);
    try {
      const response = await request(url, {
        method,
        dispatcher,
        body,
        headers: requestHeaders(queued.headers),
        signal: ending.signal,
      });
      // Postgres cannot store a NUL byte as text; the real pg_net stores what stands before it.
      const content = (await response.body.text()).split('\0', 1)[0];
      return {
        id,
        status_code: response.statusCode,
        content: content || null,
        headers: response.headers,
        content_type: response.headers['content-type'] ?? null,
        timed_out: false,
      };
    } catch (error) {
      if (ending.signal.reason?.name === 'TimeoutError') {
        const total = (performance.now() - started).toFixed(6);
        const message = `Timeout of ${timeout} ms reached. Total time: ${total} ms`;
        return { id, timed_out: true, error_msg: message };
      }
      return { id, timed_out: false, error_msg: errorMessage(error) };
    } finally {
      ending.clear();
    }
  }

  return { send, close: () => agent.destroy() };
}

function requestHeaders(headers: QueuedRequest['headers']): Record<string, string> {
  const given = Object.entries(headers ?? {}).filter((entry): entry is [string, string] => entry[1] !== null);
  return { 'user-agent': 'pg_net/0.20.0', accept: '*/*', ...Object.fromEntries(given) };
}

function errorMessage(error: unknown): string {
  const { code, message, errors } = error as { code?: string; message: string; errors?: { code?: string }[] };
  return messages[code ?? errors?.[0]?.code ?? ''] ?? message;
}
