import { definePipeline, type FunctionStageInput } from '../_millrace/mod.ts';

const patient = { kind: 'exponential' as const, baseSeconds: 5, factor: 2, capSeconds: 300, jitter: 0.2 };

/** Accounts take turns at each stage; nobody's thousand leads are all in front of another's one. */
const turns = (limit: number) => ({ concurrency: { column: 'account_id', limit } });

/** A model may answer better when asked again, and need not be given time for it. */
const modelStage: Omit<FunctionStageInput, 'function'> = {
  kind: 'function',
  concurrency: 50,
  leaseSeconds: 60,
  timeoutSeconds: 30,
  retry: {
    maxAttempts: 4,
    backoff: patient,
    byCode: { invalid_output: { maxAttempts: 3, backoff: { kind: 'list', seconds: [1, 5] } } },
  },
  completion: { callback: true, pollSeconds: 2, deadlineSeconds: 600 },
  limits: turns(50),
};

/** From a company's web site to an outreach message. After a change run `npm run pipelines:sync`. */
export const leads = definePipeline({
  name: 'leads',
  entity: {
    table: 'public.leads',
    key: 'id',
    projection: 'columns',
    label: 'email',
    startableBy: ['authenticated'],
  },
  // Far above what people do, and a bound for a program that queues its leads again and again.
  quota: {
    column: 'account_id',
    starts: { count: 5_000, perSeconds: 3600 },
    spending: { usd: 50, perSeconds: 24 * 3600 },
  },
  stages: {
    scrape: {
      kind: 'external',
      function: 'leads-scrape',
      batchSize: 5,
      maxWorkers: 4,
      leaseSeconds: 60,
      timeoutSeconds: 30,
      retry: { maxAttempts: 4, backoff: patient },
      completion: { callback: true, pollSeconds: 2, deadlineSeconds: 600 },
      // The work of one scraper and the next in line; more would only wait there.
      limits: { maxInFlight: 50, ...turns(25) },
    },
    intel: { ...modelStage, function: 'leads-intel', needs: ['scrape'] },
    strategy: { ...modelStage, function: 'leads-strategy', needs: ['intel'] },
    subject: { ...modelStage, function: 'leads-subject', needs: ['strategy'] },
    messaging: { ...modelStage, function: 'leads-messaging', needs: ['strategy', 'subject'] },
  },
});
