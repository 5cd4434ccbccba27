import { createEngine, type Engine, type Rpc } from '../engine/engine-client.ts';
import type { JobFault, JobOutcomeItem, JobReport, Verdict } from '../engine/engine-contract.ts';
import type { Platform } from '../engine/platform.ts';
import { messageOf, storableText } from '../errors.ts';
import type { Log } from '../log.ts';
import { createFolder, type Folder } from '../worker/fold.ts';
import { createRinger, type Ringer } from '../worker/ring.ts';
import { resumeJobs } from './resume-jobs.ts';

/** Tells the engine what became of external jobs. */
export class JobRecorder {
  readonly engine: Engine;
  private readonly ringer: Ringer;
  private readonly folder: Folder;
  private readonly log: Log;

  /** `until`: epoch milliseconds until which calls are repeated and locked rows tried again. */
  constructor(
    options: { platform: Platform; rpc: Rpc; log: Log },
    private readonly until: number,
  ) {
    const { platform, rpc, log } = options;
    this.log = log;
    this.engine = createEngine({ rpc, retryUntil: () => until, log });
    this.ringer = createRinger({ platform, engine: this.engine, log });
    this.folder = createFolder({ engine: this.engine, ringer: this.ringer, log });
  }

  /** Records jobs that have ended; the answers come in the order of the items. Throws as the engine does. */
  record(items: JobOutcomeItem[]): Promise<Verdict[]> {
    return resumeJobs(items, { engine: this.engine, ringer: this.ringer, folder: this.folder, until: this.until });
  }

  /** Says of jobs that have not ended whether they wait in their service's queue. Never throws: the next poll repeats it. */
  async noteJobs(reports: JobReport[]): Promise<void> {
    if (reports.length === 0) return;
    try {
      await this.engine.noteJobs(reports);
    } catch (error) {
      this.log.warn('the state of jobs could not be told to the engine', { error: messageOf(error) });
    }
  }

  /** Shows faults where an operator looks: in the engine's log, on the attempts and in doctor(). Never throws. */
  async noteFaults(faults: JobFault[]): Promise<void> {
    if (faults.length === 0) return;
    try {
      await this.engine.noteFaults(faults.map(storable));
    } catch (error) {
      this.log.error('a fault could not be told to the engine', { error: messageOf(error) });
    }
  }

  /** Resolves when the stages that got work are rung and what children reported is added up. */
  async settled(): Promise<void> {
    await this.folder.settled();
    await this.ringer.settled();
  }
}

/** What a service or a function says goes into the database as it is, but for what Postgres cannot store. */
function storable(fault: JobFault): JobFault {
  const text = (value: string | null) => (value === null ? null : storableText(value));
  return { ...fault, service: storableText(fault.service), job_id: text(fault.job_id), message: text(fault.message) };
}
