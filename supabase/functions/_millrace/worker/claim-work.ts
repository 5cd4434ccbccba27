import type { Claim } from '../engine/engine-contract.ts';
import type { Budget } from './budget.ts';
import { ClaimPace } from './claim-pace.ts';
import { ClaimSize } from './claim-size.ts';
import type { Isolate } from './isolate.ts';
import type { ItemsInWork } from './items-in-work.ts';
import type { WorkerSession } from './worker-session.ts';

export interface ClaimerOptions {
  session: WorkerSession;
  inWork: ItemsInWork;
  budget: Budget;
  isolate: Isolate;
  /** How many items to have in work at a time, instead of the stage's own number. */
  batchSize: number | undefined;
}

/** Decides when a worker takes more items and how many, and takes them. */
export class Claimer {
  readonly pace = new ClaimPace();
  private readonly size = new ClaimSize();
  private stopped = false;
  private reserved = 0;

  constructor(private readonly o: ClaimerOptions) {}

  /** Takes nothing any more. */
  stop(): void {
    this.stopped = true;
    this.reserve(0);
  }

  /** Returns whether this worker takes no more items, even into free slots: its successor does. */
  get isOver(): boolean {
    const { session, budget, isolate } = this.o;
    return session.closed || this.stopped || isolate.retired || !budget.fits(session.limits.timeout_ms);
  }

  mayClaim(): boolean {
    return !this.isOver && !this.o.inWork.hasIsolated;
  }

  /** Returns how many items can be taken once `sent` of those in work are recorded. */
  freeSlots(sent: number): number {
    if (!this.mayClaim()) return 0;
    const wanted = this.size.next(this.capacity(), this.o.inWork.size - sent);
    return Math.min(wanted, this.o.isolate.room() + this.reserved);
  }

  /** Returns how many items to ask for by a call that records `sent` items, and keeps room for them. */
  ask(sent: number): number {
    return this.reserve(this.freeSlots(sent));
  }

  /** Asks the engine for as many items as there are free slots. */
  async claim(): Promise<void> {
    const { session, inWork } = this.o;
    let limit = this.ask(0);
    // A first claim is made whatever was used up before, so that every invocation gets something done.
    if (session.isNew) limit ||= 1;
    const answer = await session.claim(inWork, limit, (tried) => {
      limit = this.timedOut(tried);
      return limit;
    });
    this.take(answer, limit);
  }

  /**
   * Asks, in a retired isolate and with nothing in hand, for one item that must be alone. Resolves to whether it got one; at
   * the isolate's or the worker's end it does not ask.
   */
  async claimAlone(): Promise<boolean> {
    const { session, inWork, budget, isolate } = this.o;
    if (!isolate.retired || isolate.isSpent || this.stopped || !budget.fits(session.limits.timeout_ms)) return false;
    this.take(await session.claim(inWork, 1, () => 1), 1);
    return inWork.size > 0;
  }

  /** A claim of `tried` items took too long; returns how many to try instead. */
  timedOut(tried: number): number {
    return this.size.timedOut(tried);
  }

  /** Takes the batch of an answer and learns from it. `limit`: the number of items asked for. */
  take(answer: Claim, limit: number): void {
    this.reserve(0);
    if (answer.status === 'refused') return;
    this.o.isolate.learn(answer.stage.row_cpu_ms);
    this.o.inWork.add(answer.batch);
    if (limit > 0) this.size.answered(answer.cut, this.o.inWork.size);
    this.pace.answered(limit, answer.batch.length, answer.wait_ms);
  }

  /** Keeps room in the isolate for so many rows, instead of what was kept before; returns for how many. */
  private reserve(wanted: number): number {
    this.o.isolate.unreserve(this.reserved);
    this.reserved = this.o.isolate.reserve(wanted);
    return this.reserved;
  }

  private capacity(): number {
    return this.o.batchSize ?? this.o.session.limits.batch_size;
  }
}
