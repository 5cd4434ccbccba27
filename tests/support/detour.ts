// A proxy between two parts of the stack: a test hears every call that passes and may hold it, answer it itself, or
// cut the line once the answer is there.
import http from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Call {
  method: string;
  path: string;
  /** The body as JSON; null where there is none. */
  body: unknown;
}

/** What becomes of a call: it passes, passes but its answer is lost, or is answered with this instead. */
export type Fate = 'pass' | 'lose answer' | { status: number; json: unknown };

export interface Detour {
  url: string;
  /** Where calls go; set before the first. */
  target: string;
  /** Decides on each call; a call waits for as long as the answer is pending. */
  decide: (call: Call) => Fate | Promise<Fate>;
  stop(): Promise<void>;
}

/** Starts a proxy on a free port of the loopback interface; until told otherwise it passes everything. */
export async function startDetour(target = ''): Promise<Detour> {
  const server = http.createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const detour: Detour = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    target,
    decide: () => 'pass',
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };

  async function answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const { method = 'GET', url: path = '/' } = request;
    const fate = await detour.decide({ method, path, body: text === '' ? null : JSON.parse(text) });
    if (typeof fate === 'object') {
      response.writeHead(fate.status, { 'content-type': 'application/json' }).end(JSON.stringify(fate.json));
      return;
    }
    const { host: _, connection: __, 'transfer-encoding': ___, ...headers } = request.headers;
    const passed = await fetch(detour.target + path, {
      method,
      headers: headers as Record<string, string>,
      ...(text === '' ? {} : { body: text }),
    });
    const body = Buffer.from(await passed.arrayBuffer());
    if (fate === 'lose answer') return void response.destroy();
    response.writeHead(passed.status, { 'content-type': passed.headers.get('content-type') ?? 'text/plain' }).end(body);
  }

  return detour;
}

/** A door that calls wait at until it is opened. */
export function gate(): { passed: Promise<void>; open(): void } {
  let open = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}
