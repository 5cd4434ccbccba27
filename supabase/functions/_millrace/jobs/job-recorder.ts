import { createEngine, type Engine, type Rpc } from '../engine/engine-client.ts';
import type { JobFault, JobOutcomeItem, JobReport, Verdict } from '../engine/engine-contract.ts';
import type { Platform } from '../engine/platform.ts';
import { messageOf, storableText } from '../errors.ts';
import type { Log } from '../log.ts';
import { ChildCollector } from '../worker/collect-children.ts';
import { createWaker, type Waker } from '../worker/wake.ts';
import { resumeJobs } from './resume-jobs.ts';

/** Tells the engine what became of external jobs. */
export class JobRecorder {
  readonly engine: Engine;
  private readonly waker: Waker;
  private readonly collector: ChildCollector;
  private readonly log: Log;

  /** `until`: epoch milliseconds until which calls are repeated and locked rows tried again. */
  constructor(
    options: { platform: Platform; rpc: Rpc; log: Log },
    private readonly until: number,
  ) {
    const { platform, rpc, log } = options;
    this.log = log;
    this.engine = createEngine({ rpc, retryUntil: () => until, log });
    this.waker = createWaker({ platform, engine: this.engine, log });
    this.collector = new ChildCollector({ engine: this.engine, waker: this.waker, log });
  }

  /** Records jobs that have ended; the answers come in the order of the items. Throws as the engine does. */
  record(items: JobOutcomeItem[]): Promise<Verdict[]> {
    return resumeJobs(items, { engine: this.engine, waker: this.waker, collector: this.collector, until: this.until });
  }

  /** Tells the engine which unfinished jobs wait in their service's queue. Never throws: the next poll repeats it. */
  async noteJobs(reports: JobReport[]): Promise<void> {
    if (reports.length === 0) return;
    try {
      await this.engine.noteJobs(reports);
    } catch (error) {
      this.log.warn('the state of jobs could not be told to the engine', { error: messageOf(error) });
    }
  }

  /** Shows faults where an operator looks: in the engine's log and in doctor(). Never throws. */
  async noteFaults(faults: JobFault[]): Promise<void> {
    if (faults.length === 0) return;
    try {
      await this.engine.noteFaults(faults.map(storable));
    } catch (error) {
      this.log.error('a fault could not be told to the engine', { error: messageOf(error) });
    }
  }

  /** Resolves when the stages that got work are woken and the children's outcomes are added up. */
  async settled(): Promise<void> {
    await this.collector.settled();
    await this.waker.settled();
  }
}

/** Removes from a fault what Postgres cannot store; all else goes into the database as the service said it. */
function storable(fault: JobFault): JobFault {
  return {
    ...fault,
    service: storableText(fault.service),
    job_id: fault.job_id === null ? null : storableText(fault.job_id),
    message: storableText(fault.message),
  };
}
