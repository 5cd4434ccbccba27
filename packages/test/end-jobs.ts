// The ends of external jobs in a test: what scripted services call back, and what a due poll finds.

import type { JobOutcomeItem, Verdict } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import type { CallbackOrigin } from '../../supabase/functions/_millrace/jobs/callback-url.ts';
import type { JobRecorder } from '../../supabase/functions/_millrace/jobs/job-recorder.ts';
import type { Env } from '../../supabase/functions/_millrace/settings.ts';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import type { databaseRpc } from './database-rpc.ts';
import { keepLines } from './kept-lines.ts';
import type { RuntimeLoader } from './project-runtime.ts';
import type { CallingService, SubmittedJob } from './scripted-service.ts';

/** How long a row that somebody holds is tried again. */
const saveMs = 2_000;

interface Ending {
  load: RuntimeLoader;
  rpc: ReturnType<typeof databaseRpc>;
  env: Env;
  stageOf(pipeline: string, stage: string): Promise<Stage>;
}

export class JobEnds {
  constructor(private readonly o: Ending) {}

  /** Has services call back about jobs that have ended; returns how many there were. */
  async callAllBack(services: CallingService[]): Promise<number> {
    let ended = 0;
    for (const service of services) {
      for (const job of service.takeEnded()) {
        await this.callBack(service, job);
        ended += 1;
      }
    }
    return ended;
  }

  private async callBack(service: CallingService, { id, end, metadata }: SubmittedJob): Promise<void> {
    const { pipeline, stage: name } = metadata as unknown as CallbackOrigin;
    const { finishCallback } = await this.o.load('jobs/finish-callback.ts');
    const stage = await this.o.stageOf(pipeline, name);
    const data = { job_id: id, metadata, ...end };
    const body = JSON.stringify({ type: `job.${end?.status}`, data });
    const origin = { ...metadata, service: service.name } as unknown as CallbackOrigin;
    const answer = await finishCallback(stage, origin, body, { env: this.o.env, recorder: await this.recorder() });
    // Ignores a 5xx: the stage's next poll finds the job, as in a project.
    if (!answer.ok && answer.status < 500) {
      throw new Error(`The callback of ${service.name} about ${id} was refused: ${await answer.text()}`);
    }
  }

  /** Asks after the jobs whose poll is due; returns how many there were. */
  async poll(): Promise<number> {
    const recorder = await this.recorder();
    const { pollServices } = await this.o.load('jobs/poll-services.ts');
    const { jobs } = await recorder.engine.poll(100);
    for (const job of jobs) {
      const stage = await this.o.stageOf(job.pipeline, job.stage);
      await pollServices(stage, [job], { env: this.o.env, recorder });
    }
    return jobs.length;
  }

  /** Records ends as a function does, but wakes nobody: the test's own loop finds what is due. */
  private async recorder(): Promise<JobRecorder> {
    const { load, rpc } = this.o;
    const [{ createEngine }, { ChildCollector }, { resumeJobs }] = await Promise.all([
      load('engine/engine-client.ts'),
      load('worker/collect-children.ts'),
      load('jobs/resume-jobs.ts'),
    ]);
    const { log } = keepLines();
    const engine = createEngine({ rpc, retryUntil: () => 0, log });
    const waker = { wake: () => {}, settled: async () => {} };
    const collector = new ChildCollector({ engine, waker, log });
    const recorder = {
      engine,
      async record(items: JobOutcomeItem[]): Promise<Verdict[]> {
        const verdicts = await resumeJobs(items, { engine, waker, collector, until: Date.now() + saveMs });
        await collector.settled();
        return verdicts;
      },
      noteJobs: async (reports: Parameters<typeof engine.noteJobs>[0]) => {
        if (reports.length > 0) await engine.noteJobs(reports);
      },
      noteFaults: async (faults: Parameters<typeof engine.noteFaults>[0]) => {
        if (faults.length > 0) await engine.noteFaults(faults);
      },
    };
    return recorder as unknown as JobRecorder;
  }
}
