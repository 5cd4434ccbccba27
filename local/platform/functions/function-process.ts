// One Deno process of a function: boots it, watches its limits, tells it when it is about to end, and ends it.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { denoBinary } from '../binaries.ts';
import type { Watchdog } from '../watchdog.ts';
import type { FunctionLimits } from './limits.ts';
import { processUsage } from './usage.ts';

const projectFolder = path.join(import.meta.dirname, '..', '..', '..');
const bootTimeoutMs = 30_000;
const watchMs = 100;
const unloadGraceMs = 1000;

export type EndReason = 'wall_clock' | 'cpu' | 'memory' | 'early_drop' | 'termination';

export interface FunctionProcess {
  readonly pid: number;
  /** What it was started from. */
  readonly entry: string;
  readonly importMap: string | undefined;
  /** The port its Deno.serve listens on. Rejects when the function does not boot. */
  readonly listening: Promise<number>;
  /** Resolves when the process is gone. */
  readonly exited: Promise<void>;
  /** No new request may go to it: it ends once it has finished what it does. */
  readonly retired: boolean;
  /** Which limit ended it, if one did. */
  readonly killedBy: EndReason | undefined;
  /** Counts a request in; the answer counts it out. */
  beginRequest(): () => void;
  /** Takes no new request, and ends once it has finished what it does. */
  retire(): void;
  /** Tells the function that it ends, gives its background work a moment, then ends it. */
  end(reason: EndReason): Promise<void>;
  kill(): Promise<void>;
}

export interface ProcessOptions {
  entry: string;
  /** Maps what the function imports; without one, package.json of this project does. */
  importMap: string | undefined;
  /** The folder of all functions, from which it may import. */
  folder: string;
  env: Record<string, string>;
  limits: FunctionLimits;
  watchdog?: Watchdog | undefined;
  log(line: string): void;
}

/** Starts the process. It is not ready before `listening` resolves. */
export function startFunctionProcess(options: ProcessOptions): FunctionProcess {
  const { entry, importMap, folder, env, limits, watchdog, log } = options;
  const token = `${randomUUID()} `;
  const readable = [projectFolder, folder, path.dirname(entry), os.tmpdir()].join(',');
  const permissions = ['--allow-net', '--allow-env', '--allow-sys', `--allow-read=${readable}`];
  // Not as --config: a deno.json in a function's own folder would hide this project's package.json and node_modules.
  const mapped = importMap === undefined ? [] : ['--import-map', importMap];
  const flags = ['--node-modules-dir=manual', '--no-lock', '--cached-only', '--no-prompt', '--quiet', ...mapped];
  const heap = `--v8-flags=--max-old-space-size=${limits.memoryMb}`;
  const main = path.join(import.meta.dirname, 'worker-main.ts');
  const child = spawn(denoBinary(), ['run', ...flags, heap, ...permissions, `--allow-write=${os.tmpdir()}`, main], {
    cwd: projectFolder,
    env: { ...env, DENO_DIR: path.join(projectFolder, '.cache', 'deno'), DENO_NO_UPDATE_CHECK: '1', NO_COLOR: '1' },
    // Its own session: Ctrl-C at a terminal reaches only the stack, which lets functions release what they hold.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  watchdog?.watch(child);
  child.stdin.on('error', () => {});
  child.stdin.write(`${JSON.stringify({ token, entry: pathToFileURL(entry).href })}\n`);

  let requests = 0;
  let background = false;
  let retired = false;
  let ending = false;
  let warned = false;
  let gone = false;
  let killedBy: EndReason | undefined;
  let cpuAtBoot = 0;
  const started = Date.now();
  let onUnloading = () => {};

  const exited = new Promise<void>((resolve) => {
    child.once('close', () => {
      gone = true;
      clearInterval(watch);
      resolve();
    });
  });
  let settle: { resolve(port: number): void; reject(error: Error): void };
  const listening = new Promise<number>((resolve, reject) => {
    settle = { resolve, reject };
  });
  listening.catch(() => {});
  const bootTimer = setTimeout(() => {
    settle.reject(new Error(`no Deno.serve within ${bootTimeoutMs} ms`));
    void kill();
  }, bootTimeoutMs);
  child.once('error', (error) => settle.reject(error));
  void exited.then(() => {
    clearTimeout(bootTimer);
    settle.reject(new Error('the process ended before it listened'));
  });

  createInterface({ input: child.stdout }).on('line', (line) => {
    if (!line.startsWith(token)) return log(line);
    const message = JSON.parse(line.slice(token.length)) as { event: string; port?: number };
    if (message.event === 'listening') {
      clearTimeout(bootTimer);
      cpuAtBoot = processUsage(pid)?.cpuMs ?? 0;
      settle.resolve(message.port as number);
    } else if (message.event === 'unloading') {
      onUnloading();
    } else {
      background = message.event === 'busy';
      endIfIdle();
    }
  });
  createInterface({ input: child.stderr }).on('line', log);

  const pid = child.pid ?? 0;
  const watch = setInterval(() => {
    const age = Date.now() - started;
    const used = processUsage(pid);
    const cpu = (used?.cpuMs ?? 0) - cpuAtBoot;
    const memory = used?.memoryBytes ?? 0;
    const memoryLimit = limits.memoryMb * 1024 * 1024;
    if (age > limits.wallClockMs / 2 || cpu > limits.cpuSoftMs) retired = true;
    if (age > limits.wallClockMs) return killBecause('wall_clock');
    if (cpuAtBoot > 0 && cpu > limits.cpuHardMs) return killBecause('cpu');
    if (memory > memoryLimit) return killBecause('memory');
    if (age > limits.wallClockMs * 0.9) warn('wall_clock');
    else if (cpuAtBoot > 0 && cpu > limits.cpuSoftMs) warn('cpu');
    else if (memory > memoryLimit * 0.9) warn('memory');
    endIfIdle();
  }, watchMs);
  watch.unref();

  function warn(reason: EndReason) {
    retired = true;
    if (warned) return;
    warned = true;
    child.stdin.write(`${JSON.stringify({ reason })}\n`);
  }

  function killBecause(reason: EndReason) {
    killedBy = reason;
    log(`ended by the platform’s limit: ${reason}`);
    void kill();
  }

  function endIfIdle() {
    if (retired && !ending && requests === 0 && !background) void end('early_drop');
  }

  async function end(reason: EndReason) {
    retired = true;
    if (!ending && !gone) {
      ending = true;
      const unloading = new Promise<void>((resolve) => {
        onUnloading = resolve;
      });
      if (warned) onUnloading();
      else warn(reason);
      const deadline = Date.now() + unloadGraceMs;
      await Promise.race([unloading, exited, wait(unloadGraceMs)]);
      while (!gone && (background || requests > 0) && Date.now() < deadline) await wait(10);
    }
    await kill();
  }

  async function kill() {
    retired = true;
    if (!gone) child.kill('SIGKILL');
    await exited;
  }

  return {
    pid,
    entry,
    importMap,
    listening,
    exited,
    get retired() {
      return retired || gone;
    },
    get killedBy() {
      return killedBy;
    },
    beginRequest() {
      requests += 1;
      return () => {
        requests -= 1;
        endIfIdle();
      };
    },
    retire() {
      retired = true;
      endIfIdle();
    },
    end,
    kill,
  };
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
