import http from 'node:http';
import { keptConnections } from '../kept-connections.ts';
import { reply } from './reply.ts';
import { refusalOfAll } from './safe-updates.ts';

/** Forwards a call below /rest/v1 to PostgREST, with headers that the gateway has authorized. */
export function forwardRest(
  restPort: number,
  url: URL,
  headers: http.IncomingHttpHeaders,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): void {
  url.searchParams.delete('apikey');
  const below = `/${url.pathname.split('/').slice(3).join('/')}`;
  const refusal = refusalOfAll(request.method, below, url.searchParams);
  if (refusal) {
    reply(response, 400, refusal);
    return;
  }
  const path = `${below}${url.search}`;
  // The caller's `connection` header would close PostgREST's connection, which Node would not notice and would reuse.
  const { connection: _, ...kept } = headers;
  const options = {
    host: '127.0.0.1',
    port: restPort,
    path,
    method: request.method,
    headers: kept,
    agent: keptConnections,
  };
  const forwarded = http.request(options, (result) => {
    // PostgREST may refuse a call before it has read it, and then closes the connection.
    if ((result.statusCode ?? 502) >= 400) forwarded.shouldKeepAlive = false;
    response.writeHead(result.statusCode ?? 502, result.headers);
    result.pipe(response);
  });
  forwarded.once('error', () => {
    if (response.headersSent) response.destroy();
    else reply(response, 503, { message: 'The Data API is not reachable' });
  });
  response.once('close', () => forwarded.destroy());
  request.pipe(forwarded);
}
