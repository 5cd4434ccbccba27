import type { Item, Outcome, StageLimits } from '../engine/engine-contract.ts';
import { messageOf } from '../errors.ts';
import type { Budget } from './budget.ts';
import { Claimer } from './claim-work.ts';
import type { Probe } from './isolate.ts';
import { ItemsInWork } from './items-in-work.ts';
import { OutcomeSaver } from './save-outcomes.ts';
import { type SessionOptions, WorkerSession } from './worker-session.ts';

/** How a drain ended. */
export type DrainEnd = 'refused' | 'empty' | 'handed_over' | 'unloaded' | 'failed';

export interface DrainOptions extends SessionOptions {
  budget: Budget;
  /** How many items to have in work at a time, instead of the stage's own number. */
  batchSize?: number | undefined;
  probe: Probe;
  run(item: Item, context: RunContext): Promise<Outcome | null>;
}

/** Context of the worker for one run of a handler. */
export interface RunContext {
  limits: StageLimits;
  controller: AbortController;
  worker: string;
  /** Reports the milliseconds of CPU that the handler was seen to use. */
  seen(ms: number): void;
  /**
   * Called when another worker is to go on with the row. The platform sends that worker's request to this isolate only
   * while the isolate has CPU left.
   */
  handedOn(): void;
}

/** How long a worker without items waits for room in its isolate, which other workers there may use. */
const ROOM_PAUSE_MS = 100;

/** One worker: claims attempts of one stage, runs their handlers and records what came of them, until it ends. */
export class Drain {
  private readonly session: WorkerSession;
  private readonly inWork: ItemsInWork;
  private readonly intake: Claimer;
  private readonly saver: OutcomeSaver;
  private unloading = false;

  constructor(private readonly o: DrainOptions) {
    const session = new WorkerSession(o);
    const inWork = new ItemsInWork(o.isolate, (item, controller, seen) =>
      o.run(item, {
        limits: session.limits,
        controller,
        worker: session.worker,
        seen,
        handedOn: () => this.intake.stop(),
      }),
    );
    this.session = session;
    this.inWork = inWork;
    this.intake = new Claimer({ session, inWork, budget: o.budget, isolate: o.isolate, batchSize: o.batchSize });
    this.saver = new OutcomeSaver({ session, inWork, intake: this.intake, log: o.log });
  }

  /** Works until the stage is empty or the budget is used. Never throws: what went wrong is in the log. */
  async run(): Promise<DrainEnd> {
    const { log, isolate } = this.o;
    const { worker } = this.session;
    const stopListening = isolate.onLook(() => this.inWork.wake());
    try {
      const end = await this.work();
      log.info('drained', { worker, end });
      return end;
    } catch (error) {
      const unsaved = this.inWork.unsaved().map((attempt) => this.inWork.about(attempt));
      log.error('a worker ended early, its leases will expire', { worker, error: messageOf(error), unsaved });
      return 'failed';
    } finally {
      stopListening();
      this.intake.stop();
      this.inWork.dropAll();
      await this.session.end();
    }
  }

  /**
   * Ends early: stops the handlers and puts their attempts back into the queue. Where the isolate has all but used up its CPU or
   * memory, one of them may be to blame, and the engine isolates those that may. Any other reason, such as the end of the wall
   * clock or a new deployment, says nothing about them.
   */
  unload(reason: string): void {
    const { worker } = this.session;
    this.o.log.warn('the platform ends this function, releasing what it holds', { worker, reason });
    this.unloading = true;
    this.intake.stop();
    this.inWork.releaseRunning(reason === 'cpu' || reason === 'memory' ? reason : undefined);
  }

  /** Takes nothing more, puts back what has not begun, and ends once the handlers that run have ended. */
  retire(): void {
    this.intake.stop();
    this.inWork.releaseWaiting();
    this.inWork.wake();
  }

  private async work(): Promise<DrainEnd> {
    if (!this.timeoutFits()) return 'failed';
    await this.intake.claim();
    for (;;) {
      this.o.isolate.look(this.o.probe);
      if (this.inWork.size > 0) {
        await this.step();
        this.intake.pace.wasBusy();
      } else {
        const end = await this.idle();
        if (end) return end;
      }
    }
  }

  /** Returns whether a handler may take as long as the stage allows; says in the log why it may not. */
  private timeoutFits(): boolean {
    const { timeout_ms } = this.session.limits;
    if (Date.now() + timeout_ms <= this.o.budget.endsAt) return true;
    this.o.log.error(
      `The stage's timeout of ${timeout_ms} ms does not fit into a worker's time: ` +
        'lower timeout_seconds or raise WORKER_SECONDS.',
    );
    return false;
  }

  /** Asks for items, waits for a stage at its limits or for room in the isolate, or ends; called without items in work. */
  private async idle(): Promise<DrainEnd | null> {
    const { intake, session, inWork } = this;
    if (session.left && !intake.isOver) return 'empty';
    if (intake.isOver) return await this.handOver();
    const idleUntil = intake.pace.idleUntil();
    if (idleUntil !== null) {
      await inWork.changed(idleUntil);
      if (intake.isOver) return null;
    } else if (intake.pace.sawEmpty && (await session.leave())) return 'empty';
    else if (intake.freeSlots(0) === 0) {
      await inWork.changed(Date.now() + ROOM_PAUSE_MS);
      return null;
    }
    await intake.claim();
    return null;
  }

  /** Waits for something to do, then records finished items or takes more into free slots; called with items in work. */
  private async step(): Promise<void> {
    const { inWork, intake, saver, session } = this;
    const { budget } = this.o;
    // Attempts in work run to their end, while a successor takes its share of the queue.
    if (intake.isOver && !session.closed && !this.unloading) await this.signOffEarly();
    const refillAt = intake.freeSlots(0) > 0 ? intake.pace.refillAt : Infinity;
    if (inWork.ready(Date.now()).length === 0) await this.waitForWork(refillAt);
    if (Date.now() >= budget.endsAt) inWork.releaseRunning();
    if (inWork.ready(Date.now()).length > 0) {
      const pause = this.unloading ? 0 : Math.min(inWork.gatheringMs(), Math.max(8, budget.endsAt - Date.now()));
      if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
      await saver.saveAll(inWork.ready(Date.now()));
    } else if (Date.now() >= refillAt) {
      await intake.claim();
    }
    if (this.unloading) saver.giveUpBusy('this function ended');
    else if (Date.now() >= budget.savesUntil) saver.giveUpBusy('all time to save was used');
  }

  /** Signs off before the last attempt has ended. A failed call is only logged: the sweep wakes a successor later. */
  private async signOffEarly(): Promise<void> {
    try {
      await this.session.signOff();
    } catch (error) {
      this.session.left = true;
      this.o.log.warn('the engine did not take a sign-off, the sweep will wake a successor', {
        error: messageOf(error),
      });
    }
  }

  /** Waits until a handler ends, an outcome can be sent again, or it is time to take more or to stop. */
  private async waitForWork(refillAt: number): Promise<void> {
    const { endsAt, savesUntil } = this.o.budget;
    const end = Date.now() < endsAt ? endsAt : savesUntil;
    await this.inWork.changed(Math.min(this.inWork.nextSendAt(), refillAt, Math.max(end, Date.now() + 5)));
  }

  /**
   * Signs off, unless it has. A retired isolate then runs what must be alone, one after the other, for nothing else can come to
   * it: the engine hands nothing else to a worker that has left.
   */
  private async handOver(): Promise<DrainEnd> {
    const { session, intake, inWork } = this;
    await session.signOff();
    if (this.unloading) return 'unloaded';
    if (session.closed) return 'refused';
    while (await intake.claimAlone()) while (inWork.size > 0) await this.step();
    return 'handed_over';
  }
}
