import type http from 'node:http';
import type { FunctionsHost } from '../functions/host.ts';
import type { KeyCheck } from './api-keys.ts';
import { reply } from './reply.ts';

/** Hands a call below /functions/v1 to the function it names, once its token is verified where the function asks for one. */
export async function callFunction(
  { functions, keyCheck }: { functions: FunctionsHost; keyCheck: KeyCheck },
  url: URL,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  const [name = '', ...rest] = url.pathname.split('/').slice(3);
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
