import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';

type Handler = Parameters<typeof createAdaptorServer>[0]['fetch'];

/** A running HTTP service: its base URL (no trailing slash) and the way to end it. */
export interface Service {
  url: string;
  stop(): Promise<void>;
}

/**
 * Serves a fetch handler on the loopback interface.
 * Takes the handler and a port (0 picks a free one); resolves once it listens, rejects if the port is taken.
 */
export async function listen(fetch: Handler, port = 0): Promise<Service> {
  const server = createAdaptorServer({ fetch }) as Server;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
