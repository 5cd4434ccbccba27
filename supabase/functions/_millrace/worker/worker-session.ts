import type { Engine } from '../engine/engine-client.ts';
import type { Claim, Completion, OutcomeItem, StageLimits } from '../engine/engine-contract.ts';
import type { Log } from '../log.ts';
import type { ChildCollector } from './collect-children.ts';
import type { Isolate } from './isolate.ts';
import type { ItemsInWork } from './items-in-work.ts';
import { renewLeases } from './renew-leases.ts';
import type { Waker } from './wake.ts';

export interface SessionOptions {
  pipeline: string;
  stage: string;
  engine: Engine;
  waker: Waker;
  collector: ChildCollector;
  log: Log;
  isolate: Isolate;
  /** The stage's batch size and timeout as the code knows them, until the first claim returns the current ones. */
  assumed: StageLimits;
}

/** Takes the limit of a call that ran into the statement timeout; returns the limit of the next try. */
type AfterTimeout = (tried: number) => number;

/** One worker as the engine knows it: numbers its calls, renews its leases, and does what the answers ask for. */
export class WorkerSession {
  readonly worker = crypto.randomUUID();
  /** The stage's limits, as the engine last answered them. */
  limits: StageLimits;
  /** Whether the engine has refused this worker more items. */
  closed = false;
  /** Whether the worker has signed off. It may still save the attempts that it holds. */
  left = false;
  private seq = 0;
  private stopRenewing: (() => void) | null = null;

  constructor(private readonly o: SessionOptions) {
    this.limits = o.assumed;
  }

  /** Returns whether no call has been answered yet. */
  get isNew(): boolean {
    return this.seq === 0;
  }

  /** Asks for up to `limit` items. `inWork` keeps the leases of what is in hand. */
  async claim(inWork: ItemsInWork, limit: number, afterTimeout: AfterTimeout): Promise<Claim> {
    const { pipeline, stage, isolate, engine } = this.o;
    const call = { pipeline, stage, worker: this.worker, host: isolate.host, seq: this.seq + 1, limit, afterTimeout };
    return this.accept(await engine.claim(call), inWork);
  }

  /** Records outcomes and asks for up to `limit` items. `goodbye`: the worker has no other item, and signs off if it gets none. */
  async complete(
    inWork: ItemsInWork,
    items: OutcomeItem[],
    limit: number,
    goodbye: boolean,
    afterTimeout: AfterTimeout,
  ): Promise<Completion> {
    const call = { worker: this.worker, seq: this.seq + 1, items, limit, goodbye, afterTimeout };
    return this.accept(await this.o.engine.complete(call), inWork);
  }

  /** Signs off because nothing is queued. Returns false when something came meanwhile, so that the worker stays. */
  async leave(): Promise<boolean> {
    this.left ||= (await this.o.engine.leave(this.worker, false, this.o.isolate.costReport())).left;
    return this.left;
  }

  /**
   * Signs off although there may be work, and wakes the successor that the engine names. Held attempts keep their
   * leases and can still be saved.
   */
  async signOff(): Promise<void> {
    if (this.left) return;
    const { wake } = await this.o.engine.leave(this.worker, true, this.o.isolate.costReport());
    this.left = true;
    this.o.waker.wake(wake);
  }

  /** Lets go of the leases, and waits for the children's outcomes to be added up. */
  async end(): Promise<void> {
    this.stopRenewing?.();
    await this.o.collector.settled();
  }

  private accept<A extends Claim | Completion>(answer: A, inWork: ItemsInWork): A {
    this.seq += 1;
    this.o.waker.wake(answer.wake);
    this.o.collector.collectChildren(answer.collect);
    if (answer.status === 'refused') {
      this.closed = true;
      this.o.log.info('no claim was granted', { worker: this.worker, reason: answer.reason });
    } else {
      this.limits = answer.stage;
      this.left ||= answer.left;
      this.stopRenewing ??= this.renew(answer.lease_ms, inWork);
    }
    return answer;
  }

  private renew(leaseMs: number, inWork: ItemsInWork): () => void {
    const { engine, log } = this.o;
    return renewLeases({
      engine,
      worker: this.worker,
      leaseMs,
      log,
      unfinished: () => inWork.unfinished(),
      onLost: (attempts) => {
        const known = new Map(attempts.map((attempt) => [attempt, inWork.about(attempt)]));
        const lost = inWork.lose(attempts).map((attempt) => known.get(attempt));
        if (lost.length > 0) log.warn('leases were lost, their handlers are stopped', { attempts: lost });
      },
    });
  }
}
