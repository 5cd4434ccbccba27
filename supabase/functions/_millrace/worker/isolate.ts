import process from 'node:process';
import { onRetire } from '../edge-runtime.ts';
import type { RowCost } from '../engine/engine-contract.ts';

/** The platform retires an isolate at this much CPU, and ends it without a word at twice as much. */
const RETIRED_AT_MS = 1_000;
/** No row is begun beyond this: what is in hand then, and what it takes to save it, fits into the rest. */
const BEGUN_UP_TO_MS = 1_500;
/** From here on an isolate asks now and then whether it is retired, so that its successor has started before it must end. */
const PROBED_FROM_MS = 900;
/** From here on a retired isolate takes nothing more, not even what must be alone. */
const SPENT_AT_MS = 1_700;
/** The isolate probes again after this share more CPU than at its last probe. */
const PROBED_EVERY = 0.1;
const SHORTEST_PROBE_PAUSE_MS = 1_000;
/** After so many probes without an answer in a row the isolate counts as retired. */
const MOST_FAILED_PROBES = 3;
/** The estimated cost of a row before any isolate has learned it. */
const CAUTIOUS_ROW_MS = 6;
const CHEAPEST_ROW_MS = 0.5;
/**
 * How many of the last rows' CPU times are kept. The estimate needs at least half of them, since the first rows of an
 * isolate pay for its compiler. CPU is measured by the clock, and other work on the machine makes most rows look dear.
 */
const SEEN_ROWS = 32;

/** Resolves to whether a request to this function came back to this isolate; undefined without an answer. */
export type Probe = () => Promise<boolean | undefined>;

/**
 * Estimates the CPU and memory that this isolate has used, row by row: on the platform `process.cpuUsage()` answers
 * zeros. Two things are certain. A request that arrives here proves that the isolate is not retired, and so has used
 * less than a second of CPU. A probe that ends up in another isolate proves the opposite. Both correct the estimated
 * cost of a row, and so does the CPU that handlers are seen to use without a pause.
 */
export class Isolate {
  /** The id by which the engine knows all workers of the isolate. */
  readonly host = crypto.randomUUID();
  /** Whether the platform sends new requests elsewhere. Attempts in work may still end here. */
  retired = false;
  private begun = 0;
  private ended = 0;
  private reserved = 0;
  private readonly seen: number[] = [];
  private learnedMs = CAUTIOUS_ROW_MS;
  private mostMs = Infinity;
  private proved = false;
  private probedAt = 0;
  private probing = false;
  private probeAgainAt = 0;
  private failedProbes = 0;
  private reportedAt = 0;
  private memoryAtStart = 0;
  private rowBytes = 0;
  private readonly listeners = new Set<() => void>();

  /** Returns the estimated cost of one row, in milliseconds of CPU. */
  get rowMs(): number {
    // Doubled: half of a row's CPU follows a pause of its handler, and is not measured.
    return Math.min(Math.max(this.learnedMs, 2 * quickQuarterOf(this.seen), CHEAPEST_ROW_MS), this.mostMs);
  }

  /** Returns the estimated cost of all rows so far, in milliseconds of CPU, those in work included. */
  get reckonedMs(): number {
    return this.rowMs * this.begun;
  }

  /** Returns whether a single row more might make the isolate reach its limit. */
  get isSpent(): boolean {
    return this.reckonedMs >= SPENT_AT_MS;
  }

  /** Begins with what isolates before this one have learned. Later words change nothing. */
  learn(rowMs: number | null | undefined): void {
    if (this.begun === 0 && rowMs) this.learnedMs = rowMs;
  }

  /** A request has come here: less than a second of CPU is used. */
  arrived(): void {
    const most = RETIRED_AT_MS / Math.max(1, this.paidRows());
    this.proved ||= most < this.rowMs;
    this.mostMs = most;
    this.retired = false;
  }

  /** Returns how many rows may still be begun. */
  room(): number {
    if (this.retired) return 0;
    const room = Math.floor(BEGUN_UP_TO_MS / this.rowMs) - this.begun - this.reserved;
    // Any isolate that still gets requests has room for a single row.
    return Math.max(this.inHand + this.reserved === 0 ? 1 : 0, room);
  }

  /** Keeps room for up to `wanted` rows that are about to be claimed; returns for how many. */
  reserve(wanted: number): number {
    const granted = Math.min(wanted, this.room());
    this.reserved += granted;
    return granted;
  }

  /** Gives up what `reserve` has kept. */
  unreserve(granted: number): void {
    this.reserved -= granted;
  }

  /** `count` rows have come in, or jobs of rows that are to be finished. */
  begin(count: number): void {
    if (this.begun === 0) this.memoryAtStart = usedMemory();
    this.begun += count;
    if (this.inHand >= 5 && this.inHand >= this.begun / 2)
      this.rowBytes = Math.max(this.rowBytes, (usedMemory() - this.memoryAtStart) / this.inHand);
  }

  /** Notes that one row has ended. `seenMs`: the CPU that it was seen to use, in milliseconds. */
  end(seenMs = 0): void {
    this.ended += 1;
    this.seen.push(seenMs);
    if (this.seen.length > SEEN_ROWS) this.seen.shift();
  }

  /** Asks where requests go now, when it is time to; listeners hear when that is known. */
  look(probe: Probe): void {
    const isFull = this.room() === 0;
    const paid = this.paidRows();
    const isNear = isFull || this.reckonedMs >= PROBED_FROM_MS;
    const isNew = paid >= this.probedAt * (1 + PROBED_EVERY) || Date.now() >= this.probeAgainAt;
    if (this.retired || this.probing || !isNear || !isNew) return;
    this.probing = true;
    this.probedAt = paid;
    this.probeAgainAt = Infinity;
    void probe().then((here) => {
      this.probing = false;
      if (here === undefined) this.noAnswer();
      else this.failedProbes = 0;
      if (here === false) {
        this.learnedMs = this.mostMs = RETIRED_AT_MS / Math.max(1, paid);
        this.retired = true;
      }
      this.notify();
    });
  }

  /**
   * Repeats an unanswered probe after a pause. After the last try the isolate counts as retired: a successor is safer.
   */
  private noAnswer(): void {
    this.failedProbes += 1;
    this.probeAgainAt = Date.now() + SHORTEST_PROBE_PAUSE_MS;
    if (this.failedProbes >= MOST_FAILED_PROBES) this.retired = true;
  }

  /** The platform says that it sends requests elsewhere from now on. */
  retire(): void {
    this.retired = true;
    this.notify();
  }

  /** Calls `listener` after each probe, and when it is retired. Returns how to stop that. */
  onLook(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /**
   * Returns the cost of a row for the engine; undefined where this isolate has learned nothing new since its last
   * report.
   */
  costReport(): RowCost | undefined {
    const knows = this.retired || this.proved || this.rowMs > this.learnedMs;
    if (!knows || this.ended < 5 || this.ended < this.reportedAt * 1.5) return undefined;
    this.reportedAt = this.ended;
    return { cpuMs: this.rowMs, bytes: this.rowBytes };
  }

  private notify(): void {
    for (const listener of this.listeners) listener();
  }

  /** Returns how many rows' whole cost is used: of a row in hand, half. */
  private paidRows(): number {
    return this.ended + this.inHand / 2;
  }

  private get inHand(): number {
    return this.begun - this.ended;
  }
}

/** Returns the value that a quarter of the values do not exceed; 0 where they are too few. */
function quickQuarterOf(values: number[]): number {
  if (values.length < SEEN_ROWS / 2) return 0;
  return values.toSorted((a, b) => a - b)[values.length >> 2] ?? 0;
}

/** The isolate that this code runs in. */
export const thisIsolate = new Isolate();
onRetire(() => thisIsolate.retire());

/** Bytes of heap and external memory in use. */
export function usedMemory(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
