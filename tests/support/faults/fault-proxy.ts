// A proxy between two parts of the stack: a test hears every call that passes and may hold it, answer it itself, or
// cut the line once the answer is there.
import http from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Call {
  method: string;
  path: string;
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** The fate of a call: it passes, or passes but its answer is lost, or is answered with this instead. */
export type Fate = 'pass' | 'lose answer' | { status: number; json: unknown };

export interface FaultProxy {
  url: string;
  /** Where calls go; set before the first. */
  target: string;
  /** Decides on each call, which waits for the decision. */
  decide: (call: Call) => Fate | Promise<Fate>;
  stop(): Promise<void>;
}

/** Starts a proxy on a free port of the loopback interface; until told otherwise it passes everything. */
export async function startFaultProxy(): Promise<FaultProxy> {
  const server = http.createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: FaultProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    target: '',
    decide: () => 'pass',
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };

  async function answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { method = 'GET', url: path = '/', headers } = request;
    const bytes = await read(request);
    const call = { method, path, headers, body: bytes.toString() };
    const fate = await proxy.decide(call);
    if (typeof fate === 'object') {
      response.writeHead(fate.status, { 'content-type': 'application/json' }).end(JSON.stringify(fate.json));
      return;
    }
    // An upload is no text.
    const passed = await send(proxy.target, call, bytes);
    if (fate === 'lose answer') response.destroy();
    else response.writeHead(passed.status, passed.headers).end(passed.body);
  }

  return proxy;
}

/** Sends a call on to `target`, a base URL; its body as `bytes` where it may be no text. */
export async function send(target: string, { method, path, headers, body }: Call, bytes?: Buffer) {
  const answer = await new Promise<http.IncomingMessage>((resolve, reject) => {
    http
      .request(target + path, { method, headers: { ...headers, host: new URL(target).host }, agent: false }, resolve)
      .once('error', reject)
      .end(bytes ?? body);
  });
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await read(answer) };
}

async function read(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** An API at which calls wait until it is opened. */
export function gate(): { passed: Promise<void>; open(): void } {
  let open = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}
