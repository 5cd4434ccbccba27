import type { Claim } from '../engine/engine-contract.ts';
import type { Budget } from './budget.ts';
import { ClaimPace } from './claim-pace.ts';
import { ClaimSize } from './claim-size.ts';
import type { HeldItems } from './held-items.ts';
import type { WorkerSession } from './worker-session.ts';

export interface IntakeOptions {
  session: WorkerSession;
  held: HeldItems;
  budget: Budget;
  /** How many items to hold at a time, instead of the stage's own number. */
  batchSize: number | undefined;
}

/** Decides when a worker takes more items and how many, and takes them. */
export class Intake {
  readonly pace = new ClaimPace();
  private readonly size = new ClaimSize();
  private stopped = false;

  constructor(private readonly o: IntakeOptions) {}

  /** Takes nothing any more. */
  stop(): void {
    this.stopped = true;
  }

  mayClaim(): boolean {
    const { session, held, budget } = this.o;
    return !session.closed && !this.stopped && !held.hasIsolated && budget.fits(session.limits.timeout_ms);
  }

  /** How many items can be taken once `sent` of those held are recorded. */
  freeSlots(sent: number): number {
    if (!this.mayClaim()) return 0;
    return this.size.next(this.capacity(), this.o.held.size - sent);
  }

  /** Asks the engine for as many items as there are free slots. */
  async claim(): Promise<void> {
    const { session, held } = this.o;
    // A first claim is made whatever the isolate has used up before, so that every invocation gets something done.
    let limit = session.isNew ? this.capacity() : this.freeSlots(0);
    const answer = await session.claim(held, limit, (tried) => {
      limit = this.timedOut(tried);
      return limit;
    });
    this.take(answer, limit);
  }

  /** A claim of `tried` items took too long; returns how many to try instead. */
  timedOut(tried: number): number {
    return this.size.timedOut(tried);
  }

  /** Takes up what an answer brings; `limit` items were asked for. */
  take(answer: Claim, limit: number): void {
    if (answer.status === 'refused') return;
    this.o.held.add(answer.batch);
    if (limit > 0) this.size.answered(answer.cut, this.o.held.size);
    this.pace.answered(limit > 0 && answer.batch.length === 0, answer.wait_ms);
  }

  private capacity(): number {
    return this.o.batchSize ?? this.o.session.limits.batch_size;
  }
}
