// A web server that writes down what it receives, for tests of what sends requests.
import http from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  at: number;
  method: string;
  url: string;
  headers: http.IncomingHttpHeaders;
  body: string;
}

export interface HttpTarget {
  url: string;
  received: Received[];
  stop(): Promise<void>;
}

/**
 * Answers 200 with the body `hello`; /slow?ms=N after N milliseconds, /status?code=N with that status, /redirect?to=URL elsewhere,
 * /broken with less than it announces.
 */
export async function startHttpTarget(): Promise<HttpTarget> {
  const received: Received[] = [];
  const server = http.createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://target');
    const chunks: Buffer[] = [];
    const at = performance.now();
    for await (const chunk of request) chunks.push(chunk);
    const { method = '', headers } = request;
    received.push({ at, method, url: request.url ?? '', headers, body: Buffer.concat(chunks).toString() });
    if (url.pathname === '/redirect') {
      response.writeHead(302, { location: url.searchParams.get('to') ?? '/found' }).end();
      return;
    }
    if (url.pathname === '/broken') {
      response.writeHead(200, { 'content-length': 100 }).write('hello', () => request.socket.end());
      return;
    }
    const status = Number(url.searchParams.get('code') ?? 200);
    const send = () => response.writeHead(status, { 'content-type': 'text/plain', 'X-Seen': 'yes' }).end('hello');
    setTimeout(send, Number(url.searchParams.get('ms') ?? 0));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
