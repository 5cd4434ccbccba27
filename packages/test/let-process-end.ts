import type { Client } from 'pg';

const told = new WeakSet<Client>();

/** Has a session keep the process alive while a statement runs or it ends, and no longer. */
export function letProcessEnd(client: Client): void {
  if (told.has(client)) return;
  told.add(client);
  const { stream } = (client as unknown as { connection: { stream: { ref(): void; unref(): void } } }).connection;
  let running = 0;
  const holding =
    (work: (...given: unknown[]) => Promise<unknown>) =>
    async (...given: unknown[]) => {
      if (running++ === 0) stream.ref();
      try {
        return await work(...given);
      } finally {
        if (--running === 0) stream.unref();
      }
    };
  const { query, end } = client as unknown as Record<'query' | 'end', (...given: unknown[]) => Promise<unknown>>;
  Object.assign(client, { query: holding(query.bind(client)), end: holding(end.bind(client)) });
  stream.unref();
}
