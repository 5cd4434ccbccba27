import type { Item, Outcome, OutcomeItem, PlatformLimit } from '../engine/engine-contract.ts';
import { classify, PermanentError } from '../errors.ts';
import { measureProcess, type Used, usedUp } from './budget.ts';
import { Stopped } from './run-handler.ts';

interface Held {
  item: Item;
  controller: AbortController;
  /** Of an isolated item: what the process had used when its handler began. */
  usedBefore: Used | null;
  outcome: Outcome | null;
  /** True once the engine has refused what the handler made of it. */
  refused: boolean;
  state: 'deferred' | 'running' | 'finished';
  /** When a finished item may be sent: later than now after the engine found its row locked. */
  sendAt: number;
  pauseMs: number;
}

const FIRST_BUSY_PAUSE_MS = 25;
const LONGEST_BUSY_PAUSE_MS = 1_000;

/** The attempts a worker holds: starts their handlers and keeps their outcomes until the engine has answered. */
export class HeldItems {
  private readonly held = new Map<number, Held>();
  private notify: () => void = () => {};
  private releasing = false;

  constructor(private readonly start: (item: Item, controller: AbortController) => Promise<Outcome | null>) {}

  get size(): number {
    return this.held.size;
  }

  get running(): number {
    return this.count((h) => h.state === 'running');
  }

  /** True while an isolated item is in work: it may have ended a worker before, and must have no neighbours. */
  get hasIsolated(): boolean {
    return this.count((h) => h.item.isolated && h.state !== 'finished') > 0;
  }

  add(items: Item[]): void {
    for (const item of items) {
      this.held.set(item.attempt, {
        item,
        controller: new AbortController(),
        usedBefore: null,
        outcome: null,
        refused: false,
        state: 'deferred',
        sendAt: 0,
        pauseMs: FIRST_BUSY_PAUSE_MS,
      });
    }
    this.startWhatMay();
  }

  /** The outcomes that can be sent at `now`. */
  ready(now: number): OutcomeItem[] {
    const due = [...this.held.values()].filter((h) => h.outcome && h.sendAt <= now);
    return due.map((h) => ({ attempt: h.item.attempt, token: h.item.token, ...(h.outcome as Outcome) }));
  }

  /** When the next postponed outcome can be sent, in epoch milliseconds; Infinity when none is postponed. */
  nextSendAt(): number {
    return Math.min(Infinity, ...[...this.held.values()].filter((h) => h.outcome).map((h) => h.sendAt));
  }

  /** Lets go of an attempt. */
  drop(attempt: number): void {
    this.held.delete(attempt);
    this.startWhatMay();
    this.notify();
  }

  /** Keeps a finished attempt to send it again after a pause that doubles each time. */
  postpone(attempt: number, now: number): void {
    const held = this.held.get(attempt);
    if (!held) return;
    held.sendAt = now + held.pauseMs;
    held.pauseMs = Math.min(held.pauseMs * 2, LONGEST_BUSY_PAUSE_MS);
  }

  /**
   * Replaces an outcome that the engine refused by a permanent failure that says why. An engine that made it a failure
   * itself answers that as a duplicate. Returns false when it was replaced before: the engine refuses that as well.
   */
  failInstead(attempt: number, reason: string | null | undefined): boolean {
    const held = this.held.get(attempt);
    if (!held || held.refused) return false;
    const error = new PermanentError('rejected', `The engine refused the outcome: ${reason ?? 'it gave no reason'}`);
    held.refused = true;
    held.outcome = { outcome: 'failed', error: classify(error) };
    held.sendAt = 0;
    return true;
  }

  /** What a line of the log says of an attempt that is held. */
  about(attempt: number | null | undefined): Record<string, unknown> {
    const item = this.held.get(attempt ?? -1)?.item;
    return item ? { attempt, run: item.run, trace: item.trace_id, entity: item.entity_id } : { attempt };
  }

  /** The attempts whose handlers have not ended. */
  unfinished(): number[] {
    return [...this.held.values()].filter((h) => h.state !== 'finished').map((h) => h.item.attempt);
  }

  /**
   * Ends the handlers of attempts that the engine took away, and forgets and returns these. It keeps one that has finished
   * meanwhile for the engine's verdict: the engine may just have recorded it.
   */
  lose(attempts: number[]): number[] {
    const unfinished = this.unfinished();
    const lost = attempts.filter((attempt) => unfinished.includes(attempt));
    for (const attempt of lost) {
      this.held.get(attempt)?.controller.abort(new Stopped(null));
      this.drop(attempt);
    }
    return lost;
  }

  /**
   * Ends every handler that still runs and starts no other. The worker reports these attempts as released, those that ran
   * with the limit that the function reached. Finished items stay.
   */
  releaseRunning(limit?: PlatformLimit): void {
    this.releasing = true;
    for (const held of this.held.values()) {
      if (held.state !== 'running') continue;
      // An isolated attempt fails for reaching the limit, and must not pay for what ran in this process before it.
      const blamed = limit && (!held.usedBefore || usedUp(limit, held.usedBefore));
      held.controller.abort(new Stopped({ outcome: 'released', ...(blamed && { limit }) }));
    }
    this.startWhatMay();
  }

  /** The attempts that the engine has answered with busy. */
  postponed(): number[] {
    return [...this.held.values()].filter((h) => h.sendAt > 0).map((h) => h.item.attempt);
  }

  /** The attempts that are finished and not yet recorded. */
  unsaved(): number[] {
    return [...this.held.values()].filter((h) => h.outcome).map((h) => h.item.attempt);
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
    for (const held of this.held.values()) {
      if (held.state !== 'deferred') continue;
      if (this.releasing) {
        this.finish(held, { outcome: 'released' });
        continue;
      }
      if (!this.mayStart(held)) continue;
      held.state = 'running';
      if (held.item.isolated) held.usedBefore = measureProcess();
      void this.run(held);
    }
  }

  /** Turns whatever goes wrong into an outcome: the worker would hold an item without one for ever. */
  private async run(held: Held): Promise<void> {
    let outcome: Outcome | null;
    try {
      outcome = await this.start(held.item, held.controller);
    } catch (error) {
      outcome = { outcome: 'failed', error: classify(error) };
    }
    if (outcome) this.finish(held, outcome);
    // Its handler has learnt that the attempt was taken away; the same attempt may be held again under another claim.
    else if (this.held.get(held.item.attempt) === held) this.drop(held.item.attempt);
  }

  private mayStart(held: Held): boolean {
    const underway = [...this.held.values()].filter((h) => h.state !== 'deferred');
    return held.item.isolated ? underway.length === 0 : !underway.some((h) => h.item.isolated);
  }

  private finish(held: Held, outcome: Outcome): void {
    held.state = 'finished';
    held.outcome = outcome;
    this.notify();
  }

  private count(test: (held: Held) => boolean): number {
    return [...this.held.values()].filter(test).length;
  }
}
