import http from 'node:http';
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
  // Opens a connection for each call: PostgREST may close one that it has answered on at any moment, and a call that reuses it
  // just then is lost.
  const options = { host: '127.0.0.1', port: restPort, path, method: request.method, headers, agent: false };
  const forwarded = http.request(options, (result) => {
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
