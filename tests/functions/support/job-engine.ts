import { vi } from 'vitest';
import type { RpcAnswer } from '../../../supabase/functions/_shared/engine-client.ts';
import type { JobOutcomeItem, WaitingJob } from '../../../supabase/functions/_shared/engine-contract.ts';

/**
 * Answers the engine's calls about external jobs: each resumed item gets the next verdict, the last one for good. `fold`
 * are the fan-outs that each answer names.
 */
export function jobEngine(options: { verdicts?: string[]; due?: WaitingJob[]; fold?: number[] } = {}) {
  const verdicts = options.verdicts ?? ['accepted'];
  let due = options.due ?? [];
  const resumed: JobOutcomeItem[][] = [];
  const polled: Record<string, unknown>[] = [];
  const folded: unknown[] = [];
  const rpc = vi.fn(async (name: string, args: Record<string, unknown>): Promise<RpcAnswer> => {
    if (name === 'pipeline_poll') {
      polled.push(args);
      const jobs = due.slice(0, args.p_limit as number);
      due = due.slice(jobs.length);
      return { data: { jobs, more: due.length > 0 }, error: null, status: 200 };
    }
    if (name === 'pipeline_fold') {
      // Who does not wait for the answer has ended before it comes.
      await new Promise((resolve) => setTimeout(resolve, 20));
      folded.push(args.p_fan_outs);
      return { data: { ring: [], busy: [], fold: [] }, error: null, status: 200 };
    }
    if (name !== 'pipeline_resume') return { data: { rung: 1 }, error: null, status: 200 };
    const items = args.p_items as JobOutcomeItem[];
    resumed.push(items);
    const answers = items.map((item) => ({
      attempt: item.submission,
      verdict: verdicts.length > 1 ? verdicts.shift() : verdicts[0],
      reason: null,
    }));
    return { data: { items: answers, ring: [], fold: options.fold ?? [] }, error: null, status: 200 };
  });
  return { rpc, resumed, polled, folded };
}
