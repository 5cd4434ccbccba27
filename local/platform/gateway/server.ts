// The one door of the stack: /rest/v1, /functions/v1 and /storage/v1, as on a hosted project's URL.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { FunctionsHost } from '../functions/host.ts';
import type { Storage } from '../storage/server.ts';
import type { KeyCheck } from './api-keys.ts';

const corsHeaders = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET,HEAD,PUT,PATCH,POST,DELETE,OPTIONS',
  'access-control-max-age': '3600',
};

export interface Upstreams {
  restPort: number;
  functions: FunctionsHost;
  storage: Storage;
}

export interface Gateway {
  url: string;
  /** From here on calls are handed on; before, they are answered 503. */
  open(upstreams: Upstreams): void;
  stop(): Promise<void>;
}

/** Starts listening on a free port of 127.0.0.1, or on `port`. */
export async function startGateway(keyCheck: KeyCheck, port = 0): Promise<Gateway> {
  let upstreams: Upstreams | undefined;

  async function answer(request: http.IncomingMessage, response: http.ServerResponse) {
    const url = new URL(request.url ?? '/', 'http://gateway');
    const [, service, version, ...rest] = url.pathname.split('/');
    if (!upstreams) return reply(response, 503, { message: 'The stack is starting' });
    if (version === 'v1' && service === 'functions') return callFunction(upstreams, url, rest, request, response);
    if (version !== 'v1' || (service !== 'rest' && service !== 'storage')) {
      return reply(response, 404, { message: 'no Route matched with those values' });
    }
    if (request.method === 'OPTIONS') {
      const asked = request.headers['access-control-request-headers'] ?? '*';
      response.writeHead(200, { ...corsHeaders, 'access-control-allow-headers': asked }).end();
      return;
    }
    for (const [name, value] of Object.entries(corsHeaders)) response.setHeader(name, value);
    const headers = needsNoKey(request.method, url.pathname)
      ? request.headers
      : await keyCheck.authorize(request.headers, url.searchParams);
    if ('refusal' in headers) {
      return reply(response, 401, { message: headers.refusal, hint: 'Send an API key of this stack as "apikey".' });
    }
    if (service === 'rest') {
      url.searchParams.delete('apikey');
      return forwardRest(upstreams.restPort, `/${rest.join('/')}${url.search}`, headers, request, response);
    }
    const claims = await keyCheck.claims(headers);
    const { storage } = upstreams;
    await getRequestListener((received) => storage.handle(received, claims))(request, response);
  }

  async function callFunction(
    { functions }: Upstreams,
    url: URL,
    [name = '', ...rest]: string[],
    request: http.IncomingMessage,
    response: http.ServerResponse,
  ) {
    if (!functions.has(name)) {
      return reply(response, 404, { code: 'NOT_FOUND', message: 'Requested function was not found' });
    }
    // A browser's preflight carries no token: the function answers it.
    if (functions.verifiesJwt(name) && request.method !== 'OPTIONS' && !(await keyCheck.claims(request.headers))) {
      const message = request.headers.authorization ? 'Invalid JWT' : 'Missing authorization header';
      return reply(response, 401, { code: 401, message });
    }
    request.headers['x-forwarded-host'] ??= request.headers.host;
    request.headers['x-forwarded-proto'] ??= 'http';
    await functions.handle(name, `/${[name, ...rest].join('/')}${url.search}`, request, response);
  }

  function forwardRest(
    restPort: number,
    path: string,
    headers: http.IncomingHttpHeaders,
    request: http.IncomingMessage,
    response: http.ServerResponse,
  ) {
    // A connection for each call: PostgREST closes those it has answered on as it likes, and one that is used again just then
    // loses its call.
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

  const server = http.createServer((request, response) => {
    answer(request, response).catch((error) => {
      if (response.headersSent) response.destroy();
      else reply(response, 500, { message: String(error) });
    });
  });
  // Idle connections must outlive the pause between two doorbells, or each would meet a closing one now and then.
  server.keepAliveTimeout = 65_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    open(given) {
      upstreams = given;
    },
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Objects that are open to all, or to whoever holds their signed URL. */
function needsNoKey(method: string | undefined, path: string): boolean {
  return (method === 'GET' || method === 'HEAD') && /^\/storage\/v1\/object\/(public|sign)\//.test(path);
}

function reply(response: http.ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
