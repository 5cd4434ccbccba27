import { type Engine, EngineRefusal } from '../engine/engine-client.ts';
import type { Claim, Completion, Item, Outcome, OutcomeItem, StageLimits } from '../engine/engine-contract.ts';
import { messageOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Budget } from './budget.ts';
import { ClaimSize } from './claim-size.ts';
import type { ChildCollector } from './collect-children.ts';
import { HeldItems } from './held-items.ts';
import { portionsOf } from './portions.ts';
import { renewLeases } from './renew-leases.ts';
import type { Waker } from './wake.ts';

/** How a drain ended. */
export type DrainEnd = 'refused' | 'empty' | 'handed_over' | 'unloaded' | 'failed';

export interface DrainOptions {
  pipeline: string;
  stage: string;
  engine: Engine;
  budget: Budget;
  waker: Waker;
  collector: ChildCollector;
  log: Log;
  /** The same for all drains of one isolate. */
  host: string;
  /** How many items to hold at a time, instead of the stage's own number. */
  batchSize?: number;
  /** The stage's own number and timeout as the code knows them, until the first claim has told today's. */
  assumed: StageLimits;
  run(item: Item, limits: StageLimits, controller: AbortController, worker: string): Promise<Outcome | null>;
}

const GATHER_MS = 8;
const FIRST_REFILL_PAUSE_MS = 250;
const LONGEST_REFILL_PAUSE_MS = 2_000;
const SHORTEST_WAIT_MS = 25;
// How long to wait for a stage at its limits; beyond that the sweep wakes when it may go on.
const LONGEST_IDLE_MS = 5_000;

/** One worker: claims attempts of one stage, runs their handlers and records what came of them, until it ends. */
export class Drain {
  private readonly worker = crypto.randomUUID();
  private readonly held: HeldItems;
  private readonly size = new ClaimSize();
  private limits: StageLimits;
  private seq = 0;
  private closed = false;
  private unloading = false;
  private sawEmpty = false;
  private refillAt = 0;
  private refillPause = FIRST_REFILL_PAUSE_MS;
  private waitMs: number | null = null;
  private busyAt = Date.now();
  private stopRenewing: (() => void) | null = null;

  constructor(private readonly o: DrainOptions) {
    this.limits = o.assumed;
    this.held = new HeldItems((item, controller) => o.run(item, this.limits, controller, this.worker));
  }

  /** Works until the stage is empty or the budget is used. Never throws: what went wrong is in the log. */
  async run(): Promise<DrainEnd> {
    try {
      const end = await this.work();
      this.o.log.info('drained', { worker: this.worker, end });
      return end;
    } catch (error) {
      this.o.log.error('a worker ended early, its leases will expire', {
        worker: this.worker,
        error: messageOf(error),
        unsaved: this.held.unsaved(),
      });
      return 'failed';
    } finally {
      this.stopRenewing?.();
      await this.o.collector.settled();
    }
  }

  /**
   * Ends early: handlers stop, their attempts go back to the queue. Where the platform says that its CPU or memory is
   * used, one of them is to blame, and they run alone from then on. Any other reason, such as the end of its wall
   * clock or a new deployment, says nothing about them.
   */
  unload(reason: string): void {
    this.o.log.warn('the platform ends this function, releasing what it holds', { worker: this.worker, reason });
    this.unloading = true;
    this.held.releaseRunning(reason === 'cpu' || reason === 'memory' ? reason : undefined);
  }

  private async work(): Promise<DrainEnd> {
    if (Date.now() + this.limits.timeout_ms > this.o.budget.endsAt) {
      this.o.log.error(
        `The stage's timeout of ${this.limits.timeout_ms} ms does not fit into a worker's time: ` +
          'lower timeout_seconds or raise WORKER_SECONDS.',
      );
      return 'failed';
    }
    await this.claim();
    for (;;) {
      if (this.held.size > 0) {
        await this.step();
        this.busyAt = Date.now();
      } else if (!this.mayClaim()) return await this.handOver();
      else if (this.sawEmpty && this.waitMs !== null && Date.now() + this.waitMs <= this.busyAt + LONGEST_IDLE_MS) {
        await this.held.changed(Date.now() + this.waitMs);
        if (this.mayClaim()) await this.claim();
      } else if (this.sawEmpty) {
        const { left } = await this.o.engine.leave(this.worker, false);
        if (left) return 'empty';
        await this.claim();
      } else await this.claim();
    }
  }

  /** Waits for something to do, then records what is finished and takes as many new items as there are free slots. */
  private async step(): Promise<void> {
    const { budget } = this.o;
    const refill = this.freeSlots(0) > 0 ? this.refillAt : Infinity;
    if (this.held.ready(Date.now()).length === 0) {
      const end = Date.now() < budget.endsAt ? budget.endsAt : budget.savesUntil;
      await this.held.changed(Math.min(this.held.nextSendAt(), refill, Math.max(end, Date.now() + 5)));
    }
    if (Date.now() >= budget.endsAt) this.held.releaseRunning();
    if (this.held.ready(Date.now()).length > 0) {
      if (this.held.running > 0 && !this.unloading) await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
      const items = this.held.ready(Date.now());
      const portions = portionsOf(items);
      const last = portions.pop() ?? [];
      for (const portion of portions) await this.save(portion, 0);
      await this.save(last, this.freeSlots(last.length));
    } else if (Date.now() >= refill) {
      await this.claim();
    }
    if (Date.now() >= budget.savesUntil || this.unloading) this.giveUpBusyItems();
    else if (Date.now() >= budget.endsAt && this.held.running === 0 && this.held.size > 0) await this.signOff();
  }

  private async claim(): Promise<void> {
    // A first claim is made whatever the isolate has used up before, so that every invocation gets something done.
    let limit = this.seq === 0 ? this.capacity() : this.freeSlots(0);
    const answer = await this.o.engine.claim({
      pipeline: this.o.pipeline,
      stage: this.o.stage,
      worker: this.worker,
      host: this.o.host,
      seq: this.seq + 1,
      limit,
      afterTimeout: (tried) => {
        limit = this.size.timedOut(tried);
        return limit;
      },
    });
    this.accept(answer, limit);
  }

  /**
   * A call the engine refuses as a whole is halved, so that one item it cannot take spoils no other. One that took too long
   * is repeated without its claim, for what is finished must not wait until the claim is small enough, and then halved too.
   */
  private async save(items: OutcomeItem[], wanted: number): Promise<void> {
    let limit = wanted;
    let answer: Completion;
    try {
      answer = await this.o.engine.complete({
        worker: this.worker,
        seq: this.seq + 1,
        items,
        limit,
        afterTimeout: (tried) => {
          if (tried > 0) this.size.timedOut(tried);
          else if (items.length > 1) throw new EngineRefusal('recording so many at once takes too long');
          limit = 0;
          return limit;
        },
      });
    } catch (error) {
      if (!(error instanceof EngineRefusal)) throw error;
      if (items.length > 1) {
        const middle = Math.ceil(items.length / 2);
        await this.save(items.slice(0, middle), 0);
        await this.save(items.slice(middle), limit);
        return;
      }
      this.giveUp(items[0]?.attempt ?? 0, messageOf(error));
      return;
    }
    for (const [index, { attempt }] of items.entries()) {
      const { verdict, reason } = answer.items[index] ?? { verdict: 'rejected', reason: 'the engine gave no answer' };
      if (verdict === 'busy') this.held.postpone(attempt, Date.now());
      // What the engine refused may still be open there, and would stay so until its lease expires.
      else if (verdict !== 'rejected' || !this.held.failInstead(attempt, reason)) this.held.drop(attempt);
      if (verdict === 'stale' || verdict === 'rejected') {
        this.o.log.warn('an outcome was not taken', { attempt, verdict, reason });
      }
    }
    this.accept(answer, limit);
  }

  private accept(answer: Claim, limit: number): void {
    this.seq += 1;
    this.o.waker.wake(answer.wake);
    this.o.collector.collectChildren(answer.collect);
    if (answer.status === 'refused') {
      this.closed = true;
      this.o.log.info('no claim was granted', { worker: this.worker, reason: answer.reason });
      return;
    }
    this.limits = answer.stage;
    this.stopRenewing ??= renewLeases({
      engine: this.o.engine,
      worker: this.worker,
      leaseMs: answer.lease_ms,
      log: this.o.log,
      unfinished: () => this.held.unfinished(),
      onLost: (attempts) => {
        const lost = this.held.lose(attempts);
        if (lost.length > 0) this.o.log.warn('leases were lost, their handlers are stopped', { attempts: lost });
      },
    });
    this.held.add(answer.batch);
    if (limit > 0) this.size.answered(answer.cut, this.held.size);
    this.sawEmpty = limit > 0 && answer.batch.length === 0;
    this.refillPause = this.sawEmpty ? Math.min(this.refillPause * 2, LONGEST_REFILL_PAUSE_MS) : FIRST_REFILL_PAUSE_MS;
    this.waitMs = this.sawEmpty && answer.wait_ms != null ? Math.max(answer.wait_ms, SHORTEST_WAIT_MS) : null;
    this.refillAt = Date.now() + (this.waitMs ?? this.refillPause);
  }

  private mayClaim(): boolean {
    const { budget } = this.o;
    return !this.closed && !this.unloading && !this.held.hasLoner && budget.fits(this.limits.timeout_ms);
  }

  /** How many items can be taken once `sent` of those held are recorded. */
  private freeSlots(sent: number): number {
    if (!this.mayClaim()) return 0;
    return this.size.next(this.capacity(), this.held.size - sent);
  }

  private capacity(): number {
    return this.o.batchSize ?? this.limits.batch_size;
  }

  private async handOver(): Promise<DrainEnd> {
    await this.signOff();
    if (this.unloading) return 'unloaded';
    return this.closed ? 'refused' : 'handed_over';
  }

  /**
   * Signs off although there may be work; the engine says whether to wake a successor. What is held keeps its lease and
   * can still be saved, which signs the worker on again.
   */
  private async signOff(): Promise<void> {
    const { wake } = await this.o.engine.leave(this.worker, true);
    this.o.waker.wake(wake);
  }

  private giveUpBusyItems(): void {
    const reason = this.unloading ? 'this function ended' : 'all time to save was used';
    for (const attempt of this.held.postponed()) this.giveUp(attempt, `its row was locked until ${reason}`);
  }

  private giveUp(attempt: number, reason: string): void {
    this.o.log.error('an outcome was not saved, the lease will expire', { attempt, reason });
    this.held.drop(attempt);
  }
}
