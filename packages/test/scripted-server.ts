// A server on 127.0.0.1 that answers as a script says.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Fault, refuses as Refuses } from './test.d.ts';

export interface ReceivedRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  json?: unknown;
  /** Sent as they are, instead of JSON. */
  bytes?: Buffer;
}

/**
 * Starts a server on a free port. `reply` may return null to leave a request without an answer. A process ends without waiting
 * for it.
 */
export async function listen(reply: (request: ReceivedRequest) => Reply | null) {
  const received: ReceivedRequest[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { method = '', url: path = '', headers } = request;
    received.push({ method, path, headers, body });
    const answer = reply({ method, path, headers, body });
    if (!answer) return;
    response.writeHead(answer.status ?? 200, { 'content-type': 'application/json', ...answer.headers });
    response.end(answer.bytes ?? JSON.stringify(answer.json ?? {}));
  });
  server.on('connection', (socket) => socket.unref());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  const close = async () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received, close };
}

class HttpFault implements Fault {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: unknown;

  constructor(status: number, headers: Record<string, string>, body: unknown) {
    this.status = status;
    this.headers = headers;
    this.body = body;
  }
}

/** An HTTP status in the place of an answer. */
export const refuses: typeof Refuses = (status, { code, message, retryAfterSeconds } = {}) =>
  new HttpFault(status, retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }, {
    error: { code: code ?? `status_${status}`, message: message ?? `The script answers ${status}.` },
  });

/** Returns the reply to a request whose answer is a fault; undefined for any other answer. */
export function faultReply(answer: unknown): Reply | undefined {
  if (!(answer instanceof HttpFault)) return undefined;
  return { status: answer.status, headers: answer.headers, json: answer.body };
}
