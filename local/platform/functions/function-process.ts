// One Deno process of a function: boots it, counts what it does, and does to it what the platform does at its limits.
import {
  type FunctionProgram,
  type ProgramEvent,
  type ProgramOptions,
  startFunctionProgram,
} from './function-program.ts';
import { type FunctionLimits, judgeUsage, type Limit, msToNextLimit } from './limits.ts';
import { createUsageMeter, type UsageMeter } from './usage-meter.ts';

const bootTimeoutMs = 30_000;
/** The pauses between two looks at what a process has used: while it works, at most and at least, and while it does nothing. */
const watchMs = { most: 100, least: 10, idle: 500 };

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
  killedBy: Limit | undefined;
  readonly #program: FunctionProgram;
  readonly #limits: FunctionLimits;
  readonly #log: (line: string) => void;
  readonly #meter: UsageMeter;
  readonly #boot: Deferred<number> = deferred();
  readonly #announced = new Set<Limit>();
  #watchTimer: NodeJS.Timeout | undefined;
  #isWatchedSeldom = false;
  /** When it was looked at, and how long after that the next look is. */
  #looked = { at: 0, delay: 0 };
  #requests = 0;
  #hasBackgroundWork = false;
  #retired = false;
  #dropsWhenIdle = false;
  #drained = false;
  #dropping = false;
  #gone = false;

  constructor(options: ProgramOptions) {
    this.entry = options.entry;
    this.importMap = options.importMap;
    this.#limits = options.limits;
    this.#log = options.log;
    this.#program = startFunctionProgram(options, (event) => this.#hear(event), this.#boot.reject);
    this.#meter = createUsageMeter(this.pid);
    this.listening = this.#boot.promise;
    this.listening.catch(() => {});
    const bootTimer = setTimeout(() => {
      this.#boot.reject(new Error(`no Deno.serve within ${bootTimeoutMs} ms`));
      void this.kill();
    }, bootTimeoutMs);
    const stopBootTimer = () => clearTimeout(bootTimer);
    this.listening.then(stopBootTimer, stopBootTimer);
    this.exited = this.#program.exited.then((heapWasFull) => {
      this.#gone = true;
      if (heapWasFull) this.#endedBy('memory');
      clearTimeout(this.#watchTimer);
      this.#boot.reject(new Error('the process ended before it listened'));
    });
    this.#watch();
  }

  get pid(): number {
    return this.#program.pid;
  }

  /** Returns whether the process takes no new request, and ends once its work is finished. */
  get retired(): boolean {
    return this.#retired || this.#dropping || this.#gone;
  }

  /** Counts a request in; the function it returns counts it out. */
  beginRequest(): () => void {
    this.#requests += 1;
    this.#watchSoon();
    return () => {
      this.#requests -= 1;
      if (this.#retired && this.#requests === 0) this.#drain();
      this.#dropIfIdle();
    };
  }

  /** Takes no new request, and ends once it has finished what it does. */
  retire(): void {
    this.#retired = true;
    this.#dropIfIdle();
  }

  /** Tells the function that the platform stops; ends it once it has finished what it does, or after `graceMs`. */
  async end(graceMs: number): Promise<void> {
    this.#drain();
    this.retire();
    const timer = setTimeout(() => void this.kill(), graceMs);
    await this.exited;
    clearTimeout(timer);
  }

  async kill(): Promise<void> {
    this.#retired = true;
    if (!this.#gone) this.#program.kill();
    await this.exited;
  }

  #hear(told: ProgramEvent): void {
    if (told.event === 'listening') {
      this.#meter.begin(told.baseBytes);
      this.#boot.resolve(told.port);
    } else if (told.event === 'dropped') {
      void this.kill();
    } else {
      this.#hasBackgroundWork = told.event === 'busy';
      if (this.#hasBackgroundWork) this.#watchSoon();
      this.#dropping = false;
      this.#dropIfIdle();
    }
  }

  /** Looks what it has used, and does what the limits say; again before it can have reached the next one. */
  #watch(): void {
    const used = this.#meter.read();
    const verdict = judgeUsage(this.#limits, used);
    if (verdict.kill) {
      this.#endedBy(verdict.kill);
      return void this.kill();
    }
    if (verdict.retire) this.#retired = true;
    this.#dropsWhenIdle = verdict.dropWhenIdle;
    for (const limit of verdict.announce) this.#announce(limit);
    this.#dropIfIdle();
    this.#isWatchedSeldom = this.#requests === 0 && !this.#hasBackgroundWork;
    const most = this.#isWatchedSeldom ? watchMs.idle : watchMs.most;
    const delay = Math.max(watchMs.least, Math.min(most, msToNextLimit(this.#limits, used)));
    this.#looked = { at: performance.now(), delay };
    this.#watchIn(delay);
  }

  /** Looks soon at a process that has done nothing until now, though no more often than at one that works. */
  #watchSoon(): void {
    if (!this.#isWatchedSeldom || this.#gone) return;
    this.#isWatchedSeldom = false;
    const { at, delay } = this.#looked;
    const passed = performance.now() - at;
    this.#watchIn(Math.min(delay, Math.max(watchMs.most, passed + watchMs.least)) - passed);
  }

  #watchIn(ms: number): void {
    clearTimeout(this.#watchTimer);
    this.#watchTimer = setTimeout(() => this.#watch(), ms);
    this.#watchTimer.unref();
  }

  #endedBy(limit: Limit): void {
    this.killedBy = limit;
    this.#log(`ended by the platform’s limit: ${limit}`);
  }

  #announce(limit: Limit): void {
    if (this.#announced.has(limit)) return;
    this.#announced.add(limit);
    this.#program.tell({ event: 'beforeunload', reason: limit });
  }

  #drain(): void {
    if (this.#drained) return;
    this.#drained = true;
    this.#program.tell({ event: 'drain' });
  }

  #dropIfIdle(): void {
    if (!this.#retired && !this.#dropsWhenIdle) return;
    if (this.#dropping || this.#hasBackgroundWork || this.#requests > 0) return;
    this.#dropping = true;
    this.#program.tell({ event: 'beforeunload', reason: 'early_drop' });
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
