import { vi } from 'vitest';
import type { RpcAnswer } from '../../../supabase/functions/_millrace/engine/engine-client.ts';
import type {
  JobFault,
  JobOutcomeItem,
  JobReport,
  WaitingJob,
} from '../../../supabase/functions/_millrace/engine/engine-contract.ts';

interface JobEngineOptions {
  /** Each resumed item gets the next one, the last one for good. */
  verdicts?: string[];
  due?: WaitingJob[];
  /** The fan-outs that each answer names. */
  collect?: number[];
  /** Whose a job is that a callback names by its id alone. */
  owners?: Record<string, object>;
}

/** Answers the engine's calls about external jobs. A stage's function is called PIPELINE-STAGE; there is no stage zzz. */
export function jobEngine(options: JobEngineOptions = {}) {
  const verdicts = options.verdicts ?? ['accepted'];
  let due = options.due ?? [];
  const resumed: JobOutcomeItem[][] = [];
  const polled: Record<string, unknown>[] = [];
  const collected: unknown[] = [];
  const faults: JobFault[] = [];
  const reports: JobReport[] = [];
  const ownerOf = (job: { pipeline?: string; stage?: string; job_id?: string; service?: string }) => {
    if (job.job_id !== undefined) return options.owners?.[job.job_id] ?? null;
    return job.stage === 'zzz' ? null : { service: '', ...job, function: `${job.pipeline}-${job.stage}` };
  };
  const rpc = vi.fn(async (name: string, args: Record<string, unknown>): Promise<RpcAnswer> => {
    if (name === 'millrace_poll') {
      polled.push(args);
      const jobs = due.slice(0, args.p_limit as number);
      due = due.slice(jobs.length);
      return { data: { jobs, more: due.length > 0 }, error: null, status: 200 };
    }
    if (name === 'millrace_collect_children') {
      // Who does not wait for the answer has ended before it comes.
      await new Promise((resolve) => setTimeout(resolve, 20));
      collected.push(args.p_fan_outs);
      return { data: { wake: [], busy: [], collect: [] }, error: null, status: 200 };
    }
    if (name === 'millrace_job_owner') return { data: ownerOf(args.p_job as object), error: null, status: 200 };
    if (name === 'millrace_note_faults') {
      faults.push(...(args.p_faults as JobFault[]));
      return { data: { noted: 0 }, error: null, status: 200 };
    }
    if (name === 'millrace_note_jobs') {
      reports.push(...(args.p_jobs as JobReport[]));
      return { data: { noted: 0 }, error: null, status: 200 };
    }
    if (name !== 'millrace_resume') return { data: { woken: 1 }, error: null, status: 200 };
    const items = args.p_items as JobOutcomeItem[];
    resumed.push(items);
    const answers = items.map((item) => ({
      attempt: item.submission,
      verdict: verdicts.length > 1 ? verdicts.shift() : verdicts[0],
      reason: null,
    }));
    return {
      data: { items: answers, wake: [], collect: options.collect ?? [] },
      error: null,
      status: 200,
    };
  });
  return { rpc, resumed, polled, collected, faults, reports };
}
