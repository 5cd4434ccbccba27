// The Edge Functions of a folder, each in a Deno process of its own that starts at the first request.
import fs from 'node:fs';
import http from 'node:http';
import type { Watchdog } from '../watchdog.ts';
import { watchFunctionConfigs } from './function-config.ts';
import { type FunctionProcess, startFunctionProcess } from './function-process.ts';
import type { FunctionLimits } from './limits.ts';

const answerTimeoutMs = 150_000;

export interface FunctionsHost {
  /** Whether a function of this name can be called. */
  has(name: string): boolean;
  /** Whether it takes only callers with a valid token. */
  verifiesJwt(name: string): boolean;
  /** Hands a request to the function; `url` is what the function sees, beginning with its name. */
  handle(name: string, url: string, request: http.IncomingMessage, response: http.ServerResponse): Promise<void>;
  /** What the function has written, oldest line first. */
  logs(name: string): string[];
  /** The ids of its live processes: the one that takes requests last. */
  pids(name: string): number[];
  /** Lets the next request start a new process, as the platform does beside a busy one; those there finish what they do. */
  retire(name: string): void;
  /** Kills its processes with SIGKILL. The next request starts a new one. */
  kill(name: string): Promise<void>;
  /** Ends all functions with `beforeunload` and a moment's grace. */
  stop(): Promise<void>;
}

export interface HostOptions {
  folder: string;
  env: Record<string, string>;
  limits: FunctionLimits;
  watchdog?: Watchdog | undefined;
  /** Receives each line a function writes, with the function's name. */
  log?: ((name: string, line: string) => void) | undefined;
}

/**
 * Gets ready to run the functions in `folder`; nothing is started yet. Each request goes by config.toml beside the folder as it
 * is at that moment.
 */
export function createFunctionsHost({ folder, env, limits, watchdog, log }: HostOptions): FunctionsHost {
  const configOf = watchFunctionConfigs(folder, (line) => log?.('functions', line));
  const processes = new Map<string, FunctionProcess[]>();
  const lines = new Map<string, string[]>();
  let stopped = false;

  const has = (name: string) => /^[A-Za-z][A-Za-z0-9_-]*$/.test(name) && fs.existsSync(configOf(name).entry);
  const linesOf = (name: string) => {
    const known = lines.get(name) ?? [];
    lines.set(name, known);
    return known;
  };

  function processFor(name: string): FunctionProcess {
    const all = processes.get(name) ?? [];
    processes.set(name, all);
    const { entry, importMap } = configOf(name);
    const current = all.at(-1);
    const isCurrent = current?.entry === entry && current.importMap === importMap;
    if (isCurrent && !current.retired) return current;
    // Deployed anew: what it is doing it may finish.
    if (!isCurrent) current?.retire();
    const fresh = startFunctionProcess({
      entry,
      importMap,
      folder,
      env,
      limits,
      watchdog,
      log(line) {
        linesOf(name).push(line);
        log?.(name, line);
      },
    });
    all.push(fresh);
    void fresh.exited.then(() => all.splice(all.indexOf(fresh), 1));
    return fresh;
  }

  async function handle(name: string, url: string, request: http.IncomingMessage, response: http.ServerResponse) {
    if (stopped) return refuse(response, 503, 'SHUTTING_DOWN', 'The stack is stopping');
    const worker = processFor(name);
    const finished = worker.beginRequest();
    response.once('close', finished);
    try {
      const port = await worker.listening;
      await forward(port, url, request, response);
    } catch (error) {
      if (response.headersSent) return void response.destroy();
      await Promise.race([worker.exited, new Promise((resolve) => setTimeout(resolve, 100))]);
      if (error instanceof AnswerTimeout) refuse(response, 504, 'IDLE_TIMEOUT', 'No answer within 150 seconds');
      else if (worker.killedBy) refuse(response, 546, 'WORKER_LIMIT', 'The function reached a limit of the platform');
      else if (error instanceof ForwardError) refuse(response, 500, 'WORKER_ERROR', 'The function ended: see its log');
      else refuse(response, 503, 'BOOT_ERROR', `The function did not start: see its log (${(error as Error).message})`);
    }
  }

  const each = (work: (worker: FunctionProcess) => Promise<void>, names = [...processes.keys()]) =>
    Promise.all(names.flatMap((name) => processes.get(name) ?? []).map(work));

  return {
    has,
    verifiesJwt: (name) => configOf(name).verifyJwt,
    handle,
    logs: (name) => [...linesOf(name)],
    pids: (name) => (processes.get(name) ?? []).map((worker) => worker.pid),
    retire(name) {
      for (const worker of processes.get(name) ?? []) worker.retire();
    },
    async kill(name) {
      await each((worker) => worker.kill(), [name]);
    },
    async stop() {
      stopped = true;
      await each((worker) => worker.end('termination'));
    },
  };
}

class ForwardError extends Error {}
class AnswerTimeout extends Error {}

function forward(port: number, url: string, request: http.IncomingMessage, response: http.ServerResponse) {
  return new Promise<void>((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: url, method: request.method, headers: request.headers };
    const forwarded = http.request({ ...options, agent: false }, (answer) => {
      clearTimeout(timer);
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      answer.once('error', reject);
      response.once('close', resolve);
    });
    const timer = setTimeout(() => forwarded.destroy(new AnswerTimeout()), answerTimeoutMs);
    forwarded.once('error', (error) => {
      clearTimeout(timer);
      reject(error instanceof AnswerTimeout ? error : new ForwardError(error.message));
    });
    response.once('close', () => forwarded.destroy());
    request.pipe(forwarded);
  });
}

function refuse(response: http.ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ code, message }));
}
