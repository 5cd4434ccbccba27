// One Deno process of a function: boots it, watches its limits, tells it when it is about to end, and ends it.
import {
  type FunctionProgram,
  type ProgramEvent,
  type ProgramOptions,
  startFunctionProgram,
} from './function-program.ts';
import { type EndReason, type FunctionLimits, judgeUsage } from './limits.ts';
import { processUsage } from './usage.ts';

const bootTimeoutMs = 30_000;
const watchMs = 100;
const unloadGraceMs = 1000;

export type ProcessOptions = ProgramOptions;

/** Starts the process. It is not ready before `listening` resolves. */
export function startFunctionProcess(options: ProcessOptions): FunctionProcess {
  return new FunctionProcess(options);
}

/** A process that takes requests at the port `listening` resolves to, until it retires or ends. */
export class FunctionProcess {
  readonly entry: string;
  readonly importMap: string | undefined;
  /** The port its Deno.serve listens on. Rejects when the function does not boot. */
  readonly listening: Promise<number>;
  /** Resolves when the process is gone. */
  readonly exited: Promise<void>;
  /** Which limit ended it, if one did. */
  killedBy: EndReason | undefined;
  readonly #program: FunctionProgram;
  readonly #limits: FunctionLimits;
  readonly #log: (line: string) => void;
  readonly #started = Date.now();
  readonly #boot: Deferred<number> = deferred();
  readonly #heardEnd: Deferred<void> = deferred();
  /** CPU time in milliseconds that it had used when it listened; what it uses for booting is not limited. */
  #cpuAtBoot: number | undefined;
  #requests = 0;
  #hasBackgroundWork = false;
  #retired = false;
  #warned = false;
  #ending = false;
  #gone = false;

  constructor(options: ProgramOptions) {
    this.entry = options.entry;
    this.importMap = options.importMap;
    this.#limits = options.limits;
    this.#log = options.log;
    this.#program = startFunctionProgram(options, (event) => this.#hear(event), this.#boot.reject);
    this.listening = this.#boot.promise;
    this.listening.catch(() => {});
    const bootTimer = setTimeout(() => {
      this.#boot.reject(new Error(`no Deno.serve within ${bootTimeoutMs} ms`));
      void this.kill();
    }, bootTimeoutMs);
    const stopBootTimer = () => clearTimeout(bootTimer);
    this.listening.then(stopBootTimer, stopBootTimer);
    const watch = setInterval(() => this.#watch(), watchMs);
    watch.unref();
    this.exited = this.#program.exited.then(() => {
      this.#gone = true;
      clearInterval(watch);
      this.#boot.reject(new Error('the process ended before it listened'));
    });
  }

  get pid(): number {
    return this.#program.pid;
  }

  /** Whether it takes no new request: it ends once it has finished what it does. */
  get retired(): boolean {
    return this.#retired || this.#gone;
  }

  /** Counts a request in; the function it returns counts it out. */
  beginRequest(): () => void {
    this.#requests += 1;
    return () => {
      this.#requests -= 1;
      this.#endIfIdle();
    };
  }

  /** Takes no new request, and ends once it has finished what it does. */
  retire(): void {
    this.#retired = true;
    this.#endIfIdle();
  }

  /** Tells the function that it ends, gives its background work a moment, then ends it. */
  async end(reason: EndReason): Promise<void> {
    this.#retired = true;
    if (!this.#ending && !this.#gone) {
      this.#ending = true;
      const deadline = Date.now() + unloadGraceMs;
      if (!this.#warned) {
        this.#warn(reason);
        await Promise.race([this.#heardEnd.promise, this.exited, wait(unloadGraceMs)]);
      }
      while (!this.#gone && this.#isBusy() && Date.now() < deadline) await wait(10);
    }
    await this.kill();
  }

  async kill(): Promise<void> {
    this.#retired = true;
    if (!this.#gone) this.#program.kill();
    await this.exited;
  }

  #hear(told: ProgramEvent): void {
    if (told.event === 'listening') {
      this.#cpuAtBoot = processUsage(this.pid)?.cpuMs;
      this.#boot.resolve(told.port);
    } else if (told.event === 'unloading') {
      this.#heardEnd.resolve();
    } else {
      this.#hasBackgroundWork = told.event === 'busy';
      this.#endIfIdle();
    }
  }

  #watch(): void {
    const used = processUsage(this.pid);
    const cpuMs = this.#cpuAtBoot === undefined ? 0 : (used?.cpuMs ?? 0) - this.#cpuAtBoot;
    const ageMs = Date.now() - this.#started;
    const verdict = judgeUsage(this.#limits, { ageMs, cpuMs, memoryBytes: used?.memoryBytes ?? 0 });
    if (verdict.retire) this.#retired = true;
    if (verdict.kill) {
      this.killedBy = verdict.kill;
      this.#log(`ended by the platform’s limit: ${verdict.kill}`);
      void this.kill();
      return;
    }
    if (verdict.warn) this.#warn(verdict.warn);
    this.#endIfIdle();
  }

  #warn(reason: EndReason): void {
    this.#retired = true;
    if (this.#warned) return;
    this.#warned = true;
    this.#program.announceEnd(reason);
  }

  #isBusy(): boolean {
    return this.#hasBackgroundWork || this.#requests > 0;
  }

  #endIfIdle(): void {
    if (this.#retired && !this.#ending && !this.#isBusy()) void this.end('early_drop');
  }
}

interface Deferred<T> {
  promise: Promise<T>;
  resolve(value: T): void;
  reject(error: Error): void;
}

function deferred<T>(): Deferred<T> {
  let settlers: Omit<Deferred<T>, 'promise'> | undefined;
  const promise = new Promise<T>((resolve, reject) => {
    settlers = { resolve, reject };
  });
  return { promise, ...(settlers as Omit<Deferred<T>, 'promise'>) };
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
