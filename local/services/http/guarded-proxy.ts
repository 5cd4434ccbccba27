import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Agent, request as send } from 'undici';
import { type AllowedHosts, guardedConnector, type Resolve } from './guarded-agent.ts';

export interface GuardedProxyOptions {
  allowedHosts: AllowedHosts;
  resolve: Resolve;
  /** Bytes that may come in through the proxy, headers aside. Every connection ends with the next one. */
  maxBytes: number;
}

/** A running proxy. */
export interface GuardedProxy {
  url: string;
  /** Whether more came than was allowed. */
  isOver(): boolean;
  stop(): Promise<void>;
}

/** Headers that concern one connection alone. */
const ofConnection = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'te', 'upgrade']);

/**
 * Starts an HTTP proxy on the loopback interface that connects to public addresses and to the allowed hosts alone, whatever
 * asks it: pages, their scripts, sockets and redirects.
 */
export async function startGuardedProxy({
  allowedHosts,
  resolve,
  maxBytes,
}: GuardedProxyOptions): Promise<GuardedProxy> {
  const connect = guardedConnector(allowedHosts, resolve);
  const agent = new Agent({ connect });
  const sockets = new Set<Socket>();
  let bytes = 0;
  function keep(socket: Socket): void {
    sockets.add(socket);
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
  }
  function count(chunk: Uint8Array): void {
    bytes += chunk.length;
    if (bytes > maxBytes) for (const socket of sockets) socket.destroy();
  }

  const server = http.createServer(async (request, response) => {
    try {
      const answer = await send(request.url ?? '', {
        dispatcher: agent,
        method: request.method as 'GET',
        headers: withoutConnection(request.headers),
        body: request.method === 'GET' || request.method === 'HEAD' ? null : request,
      });
      response.writeHead(answer.statusCode, withoutConnection(answer.headers));
      answer.body.on('data', count).on('error', () => response.destroy());
      answer.body.pipe(response);
    } catch {
      // The browser shows the page without this part.
      response.writeHead(502).end();
    }
  });
  server.on('connection', keep);
  server.on('connect', (request, client: Socket, head: Buffer) => {
    const target = URL.canParse(`https://${request.url}`) ? new URL(`https://${request.url}`) : null;
    if (!target) return client.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    const { hostname, host, port } = target;
    const address = { hostname: hostname.replace(/^\[|\]$/g, ''), host, port: port || '443', protocol: 'http:' };
    connect(address, (error, socket) => {
      if (error || !socket) return client.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
      keep(socket);
      if (client.destroyed) return socket.destroy();
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      socket.write(head);
      socket.on('data', count).on('close', () => client.destroy());
      client.on('close', () => socket.destroy());
      socket.pipe(client).pipe(socket);
    });
  });
  await new Promise<void>((resolved, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolved);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    isOver: () => bytes > maxBytes,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await Promise.all([new Promise((closed) => server.close(closed)), agent.destroy()]);
    },
  };
}

function withoutConnection(headers: http.IncomingHttpHeaders): Record<string, string | string[]> {
  const kept = Object.entries(headers).filter(([name, value]) => value !== undefined && !ofConnection.has(name));
  return Object.fromEntries(kept) as Record<string, string | string[]>;
}
