// The Edge Functions of a folder, each in a Deno process of its own that starts at the first request.
import fs from 'node:fs';
import type http from 'node:http';
import type { Watchdog } from '../watchdog.ts';
import { callProcess, refuse } from './call-process.ts';
import type { PackageSource } from './deno-command.ts';
import { type FunctionConfig, watchFunctionConfigs } from './function-config.ts';
import { type FunctionProcess, startFunctionProcess } from './function-process.ts';
import type { FunctionLimits } from './limits.ts';

/** How long a stop waits for functions. The Edge Runtime waits 15 seconds, too long for a developer's stack. */
const stopGraceMs = 1000;

export interface FunctionsHost {
  /** Whether a function of this name can be called. */
  has(name: string): boolean;
  /** Whether it takes only callers with a valid token. */
  verifiesJwt(name: string): boolean;
  /** Hands a request to the function; `url` is what the function sees, beginning with its name. */
  handle(name: string, url: string, request: http.IncomingMessage, response: http.ServerResponse): Promise<void>;
  /** The lines that the function has written, oldest first. */
  logs(name: string): string[];
  /** The ids of its live processes: the one that takes requests last. */
  pids(name: string): number[];
  /** Lets the next request start a new process, as the platform does beside a busy one; those there finish what they do. */
  retire(name: string): void;
  /** Replaces the environment of all functions: their next requests start new processes with it. */
  setEnv(env: Record<string, string>): void;
  /** Kills its processes with SIGKILL. The next request starts a new one. */
  kill(name: string): Promise<void>;
  /** Tells all functions with `drain`, and ends each once it has finished what it does or after a moment's grace. */
  stop(): Promise<void>;
}

export interface HostOptions {
  folder: string;
  env: Record<string, string>;
  limits: FunctionLimits;
  /** Default: the repository. */
  packages?: PackageSource | undefined;
  watchdog?: Watchdog | undefined;
  /** Receives each line that a function writes, with the function's name. */
  log?: ((name: string, line: string) => void) | undefined;
}

/**
 * Gets ready to run the functions in `folder`, and starts none yet. Reads the configuration beside the folder anew for each request.
 */
export function createFunctionsHost(options: HostOptions): FunctionsHost {
  return new FunctionProcesses(options);
}

class FunctionProcesses implements FunctionsHost {
  readonly #options: HostOptions;
  readonly #configOf: (name: string) => FunctionConfig;
  readonly #processes = new Map<string, FunctionProcess[]>();
  readonly #lines = new Map<string, string[]>();
  #env: Record<string, string>;
  #stopped = false;

  constructor(options: HostOptions) {
    this.#options = options;
    this.#env = options.env;
    this.#configOf = watchFunctionConfigs(options.folder, (line) => options.log?.('functions', line));
  }

  has(name: string): boolean {
    if (!/^[A-Za-z][A-Za-z0-9_-]*$/.test(name)) return false;
    const { enabled, entry } = this.#configOf(name);
    return enabled && fs.existsSync(entry);
  }

  verifiesJwt(name: string): boolean {
    return this.#configOf(name).verifyJwt;
  }

  async handle(name: string, url: string, request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    if (this.#stopped) return refuse(response, 503, 'SHUTTING_DOWN', 'The stack is stopping');
    await callProcess(this.#currentProcess(name), url, request, response);
  }

  logs(name: string): string[] {
    return [...this.#linesOf(name)];
  }

  pids(name: string): number[] {
    return this.#processesOf(name).map((worker) => worker.pid);
  }

  retire(name: string): void {
    for (const worker of this.#processesOf(name)) worker.retire();
  }

  setEnv(env: Record<string, string>): void {
    this.#env = env;
    for (const name of this.#processes.keys()) this.retire(name);
  }

  async kill(name: string): Promise<void> {
    await Promise.all(this.#processesOf(name).map((worker) => worker.kill()));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#processes.values()].flat().map((worker) => worker.end(stopGraceMs)));
  }

  /** Returns the process that takes the next request. Starts one where there is none, or where the function was deployed anew. */
  #currentProcess(name: string): FunctionProcess {
    const config = this.#configOf(name);
    const current = this.#processesOf(name).at(-1);
    const isCurrent = current?.entry === config.entry && current.importMap === config.importMap;
    if (isCurrent && !current.retired) return current;
    // A process of an older deployment may finish what it is doing.
    if (!isCurrent) current?.retire();
    return this.#start(name, config);
  }

  #start(name: string, { entry, importMap, staticFiles }: FunctionConfig): FunctionProcess {
    const { folder, limits, packages, watchdog } = this.#options;
    const env = this.#env;
    const log = (line: string) => {
      this.#linesOf(name).push(line);
      this.#options.log?.(name, line);
    };
    const fresh = startFunctionProcess({ entry, importMap, staticFiles, folder, packages, env, limits, watchdog, log });
    const all = this.#processesOf(name);
    all.push(fresh);
    void fresh.exited.then(() => all.splice(all.indexOf(fresh), 1));
    return fresh;
  }

  #processesOf(name: string): FunctionProcess[] {
    return entryOf(this.#processes, name);
  }

  #linesOf(name: string): string[] {
    return entryOf(this.#lines, name);
  }
}

/** Returns the list of this name; makes it where there is none. */
function entryOf<T>(lists: Map<string, T[]>, name: string): T[] {
  const list = lists.get(name) ?? [];
  lists.set(name, list);
  return list;
}
