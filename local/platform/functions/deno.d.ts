// The part of Deno's and the Edge Runtime's globals that functions here rely on.
declare namespace Deno {
  interface ServeOptions {
    port?: number;
    hostname?: string;
    onListen?: (address: { port: number; hostname: string }) => void;
  }
  interface MemoryUsage {
    rss: number;
    heapTotal: number;
    heapUsed: number;
    external: number;
  }
  type ServeHandler = (request: Request, info?: unknown) => Response | Promise<Response>;
  const internal: unique symbol;
  function serve(handler: ServeHandler): unknown;
  function serve(options: ServeOptions, handler: ServeHandler): unknown;
  function serve(options: ServeOptions & { handler: ServeHandler }): unknown;
  function memoryUsage(): MemoryUsage;
  function exit(code?: number): void;
}

declare namespace EdgeRuntime {
  /** Keeps the function alive until the promise has settled, although its answer has been sent. */
  function waitUntil<T>(work: Promise<T>): Promise<T>;
}
