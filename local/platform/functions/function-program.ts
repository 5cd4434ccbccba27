// Starts the Deno program of a function, and carries the lines by which program and host speak with each other.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { denoBinary } from '../binaries.ts';
import { aboveFolder, isBundled } from '../places.ts';
import type { Watchdog } from '../watchdog.ts';
import { denoEnvironment, type PackageSource, packageFlags, readableFolders } from './deno-command.ts';
import type { FunctionLimits, UnloadReason } from './limits.ts';

const mainFile = path.join(import.meta.dirname, isBundled ? 'worker-main.js' : 'worker-main.ts');

export interface ProgramOptions {
  entry: string;
  /** Maps what the function imports; without one, package.json of this project does. */
  importMap: string | undefined;
  /** Files that it may read, beside all below `folder`; with wildcards. */
  staticFiles?: string[];
  /** The folder of all functions, from which it may import. */
  folder: string;
  /** Default: the repository. */
  packages?: PackageSource | undefined;
  env: Record<string, string>;
  limits: FunctionLimits;
  watchdog?: Watchdog | undefined;
  log(line: string): void;
}

/**
 * An event that the program sends to the host: it listens, and the function holds so many bytes by then; background
 * work has begun or ended; or the function has received the event of its early drop.
 */
export type ProgramEvent =
  | { event: 'listening'; port: number; baseBytes: number }
  | { event: 'busy' | 'idle' | 'dropped' };

/** An event for the function. The program passes an `early_drop` on only while it has no background work. */
export type FunctionEvent = { event: 'drain' } | { event: 'beforeunload'; reason: UnloadReason };

export interface FunctionProgram {
  readonly pid: number;
  /** Resolves when the program is gone: to whether V8 ended it because its heap was full. */
  readonly exited: Promise<boolean>;
  /** Lets the function hear this after the turn of its event loop that is under way. */
  tell(event: FunctionEvent): void;
  /** Ends the program with SIGKILL. */
  kill(): void;
}

/** Starts the program. `heard` receives what it tells; `failed` why it could not be started. */
export function startFunctionProgram(
  options: ProgramOptions,
  heard: (event: ProgramEvent) => void,
  failed: (error: Error) => void,
): FunctionProgram {
  const { entry, watchdog, log } = options;
  const token = `${randomUUID()} `;
  const child = spawnDeno(options);
  watchdog?.watch(child);
  child.once('error', failed);
  child.stdin?.on('error', () => {});
  const tell = (message: object) => child.stdin?.write(`${JSON.stringify(message)}\n`);
  tell({ token, entry: pathToFileURL(entry).href });
  eachLine(child.stdout, (line) => {
    if (line.startsWith(token)) heard(JSON.parse(line.slice(token.length)));
    else log(line);
  });
  eachLine(child.stderr, log);
  return {
    pid: child.pid ?? 0,
    exited: new Promise((resolve) => child.once('close', (_, signal) => resolve(signal === 'SIGTRAP'))),
    tell: (event) => void tell(event),
    kill: () => void child.kill('SIGKILL'),
  };
}

function spawnDeno(options: ProgramOptions): ChildProcess {
  const { entry, importMap, staticFiles = [], folder, packages = 'repository', env, limits } = options;
  const beforeWildcards = staticFiles.map((file) => file.replace(/\/[^/]*\*.*$/, ''));
  const readable = [...readableFolders(packages), folder, path.dirname(entry), ...beforeWildcards].join(',');
  const permissions = ['--allow-net', '--allow-env', '--allow-sys', `--allow-read=${readable}`];
  const cached = packages === 'repository' ? ['--cached-only'] : [];
  const flags = [...packageFlags(packages, importMap), ...cached, '--no-prompt'];
  const heap = `--v8-flags=--max-old-space-size=${limits.memoryMb}`;
  return spawn(denoBinary(), ['run', ...flags, heap, ...permissions, `--allow-write=${os.tmpdir()}`, mainFile], {
    cwd: packages === 'repository' ? aboveFolder : folder,
    env: { ...env, ...denoEnvironment(packages) },
    // Its own session: Ctrl-C at a terminal reaches only the stack, which lets functions release what they hold.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

function eachLine(stream: NodeJS.ReadableStream | null, take: (line: string) => void): void {
  if (stream) createInterface({ input: stream }).on('line', take);
}
