import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { listen, type ReceivedRequest, type Reply } from '../../packages/test/scripted-server.ts';

export type { ReceivedRequest, Reply };

/** A real HTTP server for one test, on a free port. `reply` may return null to leave a request without an answer. */
export async function startServer(reply: (request: ReceivedRequest) => Reply | null) {
  const { url, received, close } = await listen(reply);
  onTestFinished(close);
  return { url, received };
}

/** A URL on which nothing listens. */
export async function refusedUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}
