// A service that speaks the protocol of docs/services.md and answers as a script says.
import { faultReply, listen, type Reply, refuses } from './scripted-server.ts';
import type { ScriptedService, startService as StartService } from './test.d.ts';

/** The end that a script gives a job; null: it has none. */
type JobEnd = { status: 'completed'; result: unknown } | { status: 'failed'; error: unknown } | null;

type Scripted = { end: JobEnd; forgotten?: boolean } | { fault: unknown };

/** A job that was submitted, and whom its service would call back about it. */
export interface SubmittedJob {
  id: string;
  end: JobEnd;
  /** As it was submitted: whose job it is. */
  metadata: Record<string, unknown>;
}

/** A service as the pipeline of a test sees it, which calls back in its place. */
export interface CallingService extends ScriptedService {
  /** Takes the jobs that have ended and of which nobody was told. */
  takeEnded(): SubmittedJob[];
}

export const isCalling = (service: object): service is CallingService => 'takeEnded' in service;

/** Starts a service; each new submission is answered by the script's next word, and the last one is repeated. */
export const startService: typeof StartService = async (name): Promise<CallingService> => {
  const script: Scripted[] = [];
  const jobs = new Map<string, SubmittedJob & { key: unknown; forgotten: boolean; isTold: boolean }>();
  const submitted: ScriptedService['submitted'] = [];

  function submit(body: { metadata?: Record<string, unknown> }, key: unknown): Reply {
    const known = [...jobs.values()].find((job) => key !== undefined && job.key === key);
    if (known) return { status: 200, json: { job_id: known.id, status: 'queued' } };
    const word = script.length > 1 ? script.shift() : script[0];
    if (!word) {
      const message = `The script of ${name} is empty: call completes() or another of its verbs first.`;
      return { status: 400, json: { error: { code: 'no_script', message } } };
    }
    if ('fault' in word) return faultReply(word.fault) ?? { status: 500 };
    const id = `job_${jobs.size + 1}`;
    const { end, forgotten = false } = word;
    jobs.set(id, { id, end, forgotten, metadata: body.metadata ?? {}, key, isTold: false });
    return { status: 202, json: { job_id: id, status: 'queued' } };
  }

  const { url, close } = await listen(({ method, path, headers, body }): Reply => {
    if (method === 'POST') {
      const request = JSON.parse(body || '{}');
      submitted.push({ body: request, headers });
      return submit(request, headers['idempotency-key']);
    }
    const job = jobs.get(path.split('/').at(-1) ?? '');
    if (!job || job.forgotten) return { status: 404, json: { error: { code: 'not_found', message: 'no such job' } } };
    return { json: { job_id: job.id, metadata: job.metadata, ...(job.end ?? { status: 'running' }) } };
  });
  const prefix = name.toUpperCase().replaceAll('-', '_');
  return {
    name,
    url,
    env: { [`${prefix}_URL`]: url, [`${prefix}_AUTH_TOKEN`]: 'test' },
    completes: (result) => void script.push({ end: { status: 'completed', result } }),
    fails: (error) => void script.push({ end: { status: 'failed', error: { permanent: false, ...error } } }),
    hangs: () => void script.push({ end: null }),
    forgets: () => void script.push({ end: null, forgotten: true }),
    refuses: (status, options) => void script.push({ fault: refuses(status, options) }),
    submitted,
    takeEnded: () => {
      const ended = [...jobs.values()].filter((job) => job.end && !job.isTold);
      for (const job of ended) job.isTold = true;
      return ended;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
};
