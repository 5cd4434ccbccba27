import type { Item, Outcome, StageLimits } from '../engine/engine-contract.ts';
import { messageOf } from '../errors.ts';
import type { Budget } from './budget.ts';
import { Intake } from './claim-work.ts';
import { HeldItems } from './held-items.ts';
import { OutcomeSaver } from './save-outcomes.ts';
import { type SessionOptions, WorkerSession } from './worker-session.ts';

/** How a drain ended. */
export type DrainEnd = 'refused' | 'empty' | 'handed_over' | 'unloaded' | 'failed';

export interface DrainOptions extends SessionOptions {
  budget: Budget;
  /** How many items to hold at a time, instead of the stage's own number. */
  batchSize?: number | undefined;
  run(item: Item, limits: StageLimits, controller: AbortController, worker: string): Promise<Outcome | null>;
}

const GATHER_MS = 8;

/** One worker: claims attempts of one stage, runs their handlers and records what came of them, until it ends. */
export class Drain {
  private readonly session: WorkerSession;
  private readonly held: HeldItems;
  private readonly intake: Intake;
  private readonly saver: OutcomeSaver;
  private unloading = false;

  constructor(private readonly o: DrainOptions) {
    const session = new WorkerSession(o);
    const held = new HeldItems((item, controller) => o.run(item, session.limits, controller, session.worker));
    this.session = session;
    this.held = held;
    this.intake = new Intake({ session, held, budget: o.budget, batchSize: o.batchSize });
    this.saver = new OutcomeSaver({ session, held, intake: this.intake, log: o.log });
  }

  /** Works until the stage is empty or the budget is used. Never throws: what went wrong is in the log. */
  async run(): Promise<DrainEnd> {
    const { log } = this.o;
    const { worker } = this.session;
    try {
      const end = await this.work();
      log.info('drained', { worker, end });
      return end;
    } catch (error) {
      const unsaved = this.held.unsaved().map((attempt) => this.held.about(attempt));
      log.error('a worker ended early, its leases will expire', { worker, error: messageOf(error), unsaved });
      return 'failed';
    } finally {
      await this.session.end();
    }
  }

  /**
   * Ends early: stops the handlers and puts their attempts back into the queue. Where the function has used up its CPU or
   * memory, one of them is to blame, and the engine isolates them from then on. Any other reason, such as the end of the wall
   * clock or a new deployment, says nothing about them.
   */
  unload(reason: string): void {
    const { worker } = this.session;
    this.o.log.warn('the platform ends this function, releasing what it holds', { worker, reason });
    this.unloading = true;
    this.intake.stop();
    this.held.releaseRunning(reason === 'cpu' || reason === 'memory' ? reason : undefined);
  }

  private async work(): Promise<DrainEnd> {
    if (!this.timeoutFits()) return 'failed';
    await this.intake.claim();
    for (;;) {
      if (this.held.size > 0) {
        await this.step();
        this.intake.pace.wasBusy();
      } else {
        const end = await this.stepIdle();
        if (end) return end;
      }
    }
  }

  /** Whether a handler may take as long as the stage allows; says in the log why it may not. */
  private timeoutFits(): boolean {
    const { timeout_ms } = this.session.limits;
    if (Date.now() + timeout_ms <= this.o.budget.endsAt) return true;
    this.o.log.error(
      `The stage's timeout of ${timeout_ms} ms does not fit into a worker's time: ` +
        'lower timeout_seconds or raise WORKER_SECONDS.',
    );
    return false;
  }

  /** With nothing in hand: asks for more, waits for a stage at its limits, or ends. */
  private async stepIdle(): Promise<DrainEnd | null> {
    const { intake, session } = this;
    if (!intake.mayClaim()) return await this.handOver();
    const idleUntil = intake.pace.idleUntil();
    if (idleUntil !== null) {
      await this.held.changed(idleUntil);
      if (!intake.mayClaim()) return null;
    } else if (intake.pace.sawEmpty && (await session.leave())) return 'empty';
    await intake.claim();
    return null;
  }

  /** With items in hand: waits for something to do, then records what is finished or takes more into the free slots. */
  private async step(): Promise<void> {
    const { held, intake, saver } = this;
    const { budget } = this.o;
    const refillAt = intake.freeSlots(0) > 0 ? intake.pace.refillAt : Infinity;
    if (held.ready(Date.now()).length === 0) await this.waitForWork(refillAt);
    if (Date.now() >= budget.endsAt) held.releaseRunning();
    if (held.ready(Date.now()).length > 0) {
      // Handlers that end within the same few milliseconds share one call.
      if (held.running > 0 && !this.unloading) await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
      await saver.saveAll(held.ready(Date.now()));
    } else if (Date.now() >= refillAt) {
      await intake.claim();
    }
    if (this.unloading) saver.giveUpBusy('this function ended');
    else if (Date.now() >= budget.savesUntil) saver.giveUpBusy('all time to save was used');
    else if (Date.now() >= budget.endsAt && held.running === 0 && held.size > 0) await this.session.signOff();
  }

  /** Waits until a handler ends, an outcome can be sent again, or it is time to take more or to stop. */
  private async waitForWork(refillAt: number): Promise<void> {
    const { endsAt, savesUntil } = this.o.budget;
    const end = Date.now() < endsAt ? endsAt : savesUntil;
    await this.held.changed(Math.min(this.held.nextSendAt(), refillAt, Math.max(end, Date.now() + 5)));
  }

  private async handOver(): Promise<DrainEnd> {
    await this.session.signOff();
    if (this.unloading) return 'unloaded';
    return this.session.closed ? 'refused' : 'handed_over';
  }
}
