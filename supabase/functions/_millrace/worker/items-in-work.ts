import type { Item, Outcome, OutcomeItem, PlatformLimit } from '../engine/engine-contract.ts';
import { classify, PermanentError } from '../errors.ts';
import { type Isolate, usedMemory } from './isolate.ts';
import { Stopped } from './run-handler.ts';

interface ItemInWork {
  item: Item;
  controller: AbortController;
  /** When its handler began, in epoch milliseconds, and how long it took. */
  startedAt: number;
  tookMs: number;
  /** Milliseconds of CPU that it was seen to use. */
  seenMs: number;
  /** Estimated use of the isolate when the handler began: milliseconds of CPU, bytes of memory. */
  before: { cpuMs: number; bytes: number };
  outcome: Outcome | null;
  /** Whether the engine has refused the handler's outcome. */
  refused: boolean;
  state: 'deferred' | 'running' | 'finished';
  /** When a finished item may be sent: later than now after the engine found its row locked. */
  sendAt: number;
  pauseMs: number;
}

/** Runs the handler of an item. It tells `seen` how many milliseconds of CPU it was seen to use at a stretch. */
export type StartHandler = (
  item: Item,
  controller: AbortController,
  seen: (ms: number) => void,
) => Promise<Outcome | null>;

/** A handler that was seen to use this much CPU, in milliseconds, is the reason why the isolate reached its limit. */
const GUILTY_MS = 400;
const GUILTY_BYTES = 75 * 1024 * 1024;
/** From this estimate on, in milliseconds of CPU, many rows have worn the isolate out: no single one is to blame. */
const WORN_MS = 1_000;
/** How long a finished item waits for others, as a share of what its handler took; and at least and at most. */
const GATHERING_SHARE = 0.1;
const GATHERING_MS = [8, 250] as const;
const FIRST_BUSY_PAUSE_MS = 25;
const LONGEST_BUSY_PAUSE_MS = 1_000;

/** The attempts a worker holds: starts their handlers and keeps their outcomes until the engine has answered. */
export class ItemsInWork {
  private readonly items = new Map<number, ItemInWork>();
  private notify: () => void = () => {};
  private releasing = false;

  constructor(
    private readonly isolate: Isolate,
    private readonly start: StartHandler,
  ) {}

  get size(): number {
    return this.items.size;
  }

  get running(): number {
    return this.count((h) => h.state === 'running');
  }

  /** True while an isolated item is in work: it may have ended a worker before, and must have no neighbours. */
  get hasIsolated(): boolean {
    return this.count((h) => h.item.isolated && h.state !== 'finished') > 0;
  }

  add(items: Item[]): void {
    this.isolate.begin(items.length);
    for (const item of items) {
      this.items.set(item.attempt, {
        item,
        controller: new AbortController(),
        startedAt: 0,
        tookMs: 0,
        seenMs: 0,
        before: { cpuMs: 0, bytes: 0 },
        outcome: null,
        refused: false,
        state: 'deferred',
        sendAt: 0,
        pauseMs: FIRST_BUSY_PAUSE_MS,
      });
    }
    this.startWhatMay();
  }

  /** Returns the outcomes that can be sent at `now`. */
  ready(now: number): OutcomeItem[] {
    const due = [...this.items.values()].filter((h) => h.outcome && h.sendAt <= now);
    return due.map((h) => ({ attempt: h.item.attempt, token: h.item.token, ...(h.outcome as Outcome) }));
  }

  /**
   * How many milliseconds finished items wait for others before they are saved, so that one call records many: a share of what
   * a handler takes, which its row has waited already. None where nothing else is running.
   */
  gatheringMs(): number {
    if (this.running === 0) return 0;
    const [least, most] = GATHERING_MS;
    const quickest = Math.min(...[...this.items.values()].filter((h) => h.outcome).map((h) => h.tookMs));
    return Math.min(most, Math.max(least, quickest * GATHERING_SHARE));
  }

  /** Returns when the next postponed outcome can be sent, in epoch milliseconds; Infinity when none is postponed. */
  nextSendAt(): number {
    return Math.min(Infinity, ...[...this.items.values()].filter((h) => h.outcome).map((h) => h.sendAt));
  }

  /** Lets go of an attempt. */
  drop(attempt: number): void {
    const entry = this.items.get(attempt);
    if (entry) this.isolate.end(entry.seenMs);
    this.items.delete(attempt);
    this.startWhatMay();
    this.notify();
  }

  /** Lets go of everything, as a worker does that ends early. */
  dropAll(): void {
    for (const entry of this.items.values()) this.isolate.end(entry.seenMs);
    this.items.clear();
  }

  /** Lets `changed` resolve. */
  wake(): void {
    this.notify();
  }

  /** Keeps a finished attempt to send it again after a pause that doubles each time. */
  postpone(attempt: number, now: number): void {
    const entry = this.items.get(attempt);
    if (!entry) return;
    entry.sendAt = now + entry.pauseMs;
    entry.pauseMs = Math.min(entry.pauseMs * 2, LONGEST_BUSY_PAUSE_MS);
  }

  /**
   * Replaces an outcome that the engine refused by a permanent failure that says why. An engine that made it a failure
   * itself answers that as a duplicate. Returns false when it was replaced before: the engine refuses that as well.
   */
  failInstead(attempt: number, reason: string | null | undefined): boolean {
    const entry = this.items.get(attempt);
    if (!entry || entry.refused) return false;
    const error = new PermanentError('rejected', `The engine refused the outcome: ${reason ?? 'it gave no reason'}`);
    entry.refused = true;
    entry.outcome = { outcome: 'failed', error: classify(error) };
    entry.sendAt = 0;
    return true;
  }

  /** Returns the fields by which a line of the log names an attempt. */
  about(attempt: number | null | undefined): Record<string, unknown> {
    const item = this.items.get(attempt ?? -1)?.item;
    return item ? { attempt, run: item.run, trace: item.trace_id, entity: item.entity_id } : { attempt };
  }

  /** Returns the attempts whose handlers have not ended. */
  unfinished(): number[] {
    return [...this.items.values()].filter((h) => h.state !== 'finished').map((h) => h.item.attempt);
  }

  /**
   * Ends the handlers of attempts that the engine took away, and forgets and returns these. It keeps one that has finished
   * meanwhile for the engine's verdict: the engine may just have recorded it.
   */
  lose(attempts: number[]): number[] {
    const unfinished = this.unfinished();
    const lost = attempts.filter((attempt) => unfinished.includes(attempt));
    for (const attempt of lost) {
      this.items.get(attempt)?.controller.abort(new Stopped(null));
      this.drop(attempt);
    }
    return lost;
  }

  /**
   * Ends every handler that still runs and starts no other. The worker reports these attempts as released, those that are to
   * blame for it with the limit that the isolate reached. Finished items stay.
   */
  releaseRunning(limit?: PlatformLimit): void {
    const running = [...this.items.values()].filter((h) => h.state === 'running');
    const blamed = limit ? this.toBlame(running, limit) : [];
    for (const entry of running) {
      entry.controller.abort(new Stopped({ outcome: 'released', ...(blamed.includes(entry) && { limit }) }));
    }
    this.releaseWaiting();
  }

  /** Starts no other handler, and reports the attempts that wait for one as released. Handlers that run go on. */
  releaseWaiting(): void {
    this.releasing = true;
    this.startWhatMay();
  }

  /**
   * Returns the running attempts that may be why the isolate is about to reach a limit.
   *
   * - An isolated attempt, unless earlier rows had used most of the limit.
   * - Else, for memory: all of them.
   * - Else the attempts that were seen to use much CPU; where none was, and the rows so far do not explain it, all of
   *   them.
   */
  private toBlame(running: ItemInWork[], limit: PlatformLimit): ItemInWork[] {
    const alone = running.find((h) => h.item.isolated);
    if (alone) {
      const ownBytes = usedMemory() - alone.before.bytes;
      return (limit === 'cpu' ? alone.before.cpuMs < WORN_MS : ownBytes >= GUILTY_BYTES) ? [alone] : [];
    }
    if (limit === 'memory') return running;
    const seen = running.filter((h) => h.seenMs >= GUILTY_MS);
    if (seen.length > 0) return seen;
    return this.isolate.reckonedMs < WORN_MS ? running : [];
  }

  /** Returns the attempts that the engine has answered with busy. */
  postponed(): number[] {
    return [...this.items.values()].filter((h) => h.sendAt > 0).map((h) => h.item.attempt);
  }

  /** Returns the attempts that are finished and not yet recorded. */
  unsaved(): number[] {
    return [...this.items.values()].filter((h) => h.outcome).map((h) => h.item.attempt);
  }

  /** Resolves at the next change, or at `until` (epoch milliseconds). */
  async changed(until: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      this.notify = resolve;
      if (Number.isFinite(until)) timer = setTimeout(resolve, Math.max(0, until - Date.now()));
    });
    clearTimeout(timer);
  }

  private startWhatMay(): void {
    for (const entry of this.items.values()) {
      if (entry.state !== 'deferred') continue;
      if (this.releasing) {
        this.finish(entry, { outcome: 'released' });
        continue;
      }
      if (!this.mayStart(entry)) continue;
      entry.state = 'running';
      entry.startedAt = Date.now();
      if (entry.item.isolated)
        entry.before = { cpuMs: this.isolate.retired ? WORN_MS : this.isolate.reckonedMs, bytes: usedMemory() };
      void this.run(entry);
    }
  }

  /** Runs a handler and turns any error into an outcome: the worker would wait for ever for an item without one. */
  private async run(entry: ItemInWork): Promise<void> {
    let outcome: Outcome | null;
    try {
      outcome = await this.start(entry.item, entry.controller, (ms) => {
        entry.seenMs += ms;
      });
    } catch (error) {
      outcome = { outcome: 'failed', error: classify(error) };
    }
    if (outcome) this.finish(entry, outcome);
    // The handler found its lease lost. The same attempt may by now be in work again under another claim: then it stays.
    else if (this.items.get(entry.item.attempt) === entry) this.drop(entry.item.attempt);
  }

  private mayStart(entry: ItemInWork): boolean {
    const underway = [...this.items.values()].filter((h) => h.state !== 'deferred');
    return entry.item.isolated ? underway.length === 0 : !underway.some((h) => h.item.isolated);
  }

  private finish(entry: ItemInWork, outcome: Outcome): void {
    entry.state = 'finished';
    entry.tookMs = Date.now() - entry.startedAt;
    entry.outcome = outcome;
    this.notify();
  }

  private count(test: (entry: ItemInWork) => boolean): number {
    return [...this.items.values()].filter(test).length;
  }
}
