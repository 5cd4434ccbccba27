import { createServer } from 'node:net';

/** Resolves to a TCP port on 127.0.0.1 that nobody uses at this moment. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve((address as { port: number }).port));
    });
  });
}

/** Throws one sentence, naming the option that gave it, when a port is given twice, is in use or cannot be opened. */
export async function requireFreePorts(ports: Record<string, number | undefined>): Promise<void> {
  const given = Object.entries(ports).filter((entry): entry is [string, number] => entry[1] !== undefined);
  for (const [place, [option, port]] of given.entries()) {
    const twin = given.slice(0, place).find(([, other]) => other === port)?.[0];
    if (twin) throw new Error(`${option} and ${twin} are both ${port}: give each a port of its own.`);
    const code = await portFault(port);
    if (!code) continue;
    const why = code === 'EADDRINUSE' ? 'is in use' : `cannot be opened (${code})`;
    throw new Error(`Port ${port} of 127.0.0.1 ${why}: give ${option} another one, or leave it out for a free one.`);
  }
}

function portFault(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(undefined)));
  });
}
