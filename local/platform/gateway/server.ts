// The gateway of the stack: /rest/v1, /functions/v1, /storage/v1, /auth/v1 and /realtime/v1, as on a hosted project's URL,
// and the static pages.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { Auth } from '../auth/server.ts';
import type { FunctionsHost } from '../functions/host.ts';
import type { OperateApi } from '../operate/operate-api.ts';
import type { Realtime } from '../realtime/server.ts';
import type { Storage } from '../storage/server.ts';
import type { KeyCheck } from './api-keys.ts';
import { callFunction } from './call-function.ts';
import { allowAnyOrigin } from './cors.ts';
import { forwardRest } from './forward-rest.ts';
import { reply } from './reply.ts';
import { servePage } from './serve-page.ts';
import { urlOf } from './url-of.ts';

export interface Upstreams {
  restPort: number;
  functions: FunctionsHost;
  storage: Storage;
  auth: Auth;
  realtime: Realtime;
  api: OperateApi;
}

export interface Gateway {
  url: string;
  /** Lets the gateway hand calls on. Before this call, it answers 503. */
  open(upstreams: Upstreams): void;
  stop(): Promise<void>;
}

/** Starts listening on a free port of 127.0.0.1, or on `port`. */
export async function startGateway(keyCheck: KeyCheck, port = 0): Promise<Gateway> {
  let upstreams: Upstreams | undefined;
  const server = http.createServer((request, response) => {
    if (!upstreams) return reply(response, 503, { message: 'The stack is starting' });
    answer({ ...upstreams, keyCheck }, request, response).catch((error) => {
      if (response.headersSent) response.destroy();
      else reply(response, 500, { message: String(error) });
    });
  });
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy());
    if (!upstreams || !request.url?.startsWith('/realtime/v1/websocket')) return socket.destroy();
    upstreams.realtime.upgrade(request, socket, head, keyCheck).catch(() => socket.destroy());
  });
  // Idle connections must outlive the pause between two wake-ups, or each would meet a closing one now and then.
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

async function answer(
  parts: Upstreams & { keyCheck: KeyCheck },
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  const url = urlOf(request);
  if (!url) return reply(response, 400, { message: 'The address of this request cannot be read: correct its path.' });
  const [, service, version] = url.pathname.split('/');
  if (version === 'v1' && service === 'functions') return callFunction(parts, url, request, response);
  if (await parts.api.handle(request, response)) return;
  if (await servePage(url.pathname, request, response)) return;
  if (version !== 'v1' || (service !== 'rest' && service !== 'storage' && service !== 'auth')) {
    return reply(response, 404, { message: 'no Route matched with those values' });
  }
  if (allowAnyOrigin(request, response)) return;
  const { keyCheck, restPort, storage, auth } = parts;
  const headers = needsNoKey(request.method, url.pathname)
    ? request.headers
    : await keyCheck.authorize(request.headers, url.searchParams);
  if ('refusal' in headers) {
    return reply(response, 401, { message: headers.refusal, hint: 'Send an API key of this stack as "apikey".' });
  }
  if (service === 'rest') return forwardRest(restPort, url, headers, request, response);
  const claims = await keyCheck.claims(headers);
  const { handle } = service === 'auth' ? auth : storage;
  await getRequestListener((received) => handle(received, claims))(request, response);
}

/** Returns whether a call needs no key: it reads an object that is public, or by a signed URL. */
function needsNoKey(method: string | undefined, path: string): boolean {
  return (method === 'GET' || method === 'HEAD') && /^\/storage\/v1\/object\/(public|sign)\//.test(path);
}
