import { definePipeline } from '../_millrace/mod.ts';

const minute = 60;
const hour = 60 * minute;
/** Five retries, each after a longer wait; then the link is dead. */
const waits = { kind: 'list' as const, seconds: [5 * minute, 30 * minute, 2 * hour, 6 * hour, 24 * hour] };

/** A lost worker is no fault of the link, which is ready again at once. */
const retry = {
  maxAttempts: 6,
  backoff: waits,
  byCode: {
    lost_lease: { backoff: { kind: 'list' as const, seconds: [0] } },
    // The waits span more than the day for which these are tried elsewhere.
    rate_limited: { maxAttempts: 6, backoff: waits },
    misconfigured: { maxAttempts: 6, backoff: waits },
  },
};
const work = { kind: 'function' as const, batchSize: 5, maxWorkers: 4, leaseSeconds: 60, timeoutSeconds: 30, retry };
/** A model that is asked in the background answers by callback, or is asked after. */
const answered = { callback: true, pollSeconds: 5, deadlineSeconds: 600 };
const scraped = { callback: true, pollSeconds: 5, deadlineSeconds: 60 };

const isJob = '$.entity.classification == "job"';
const isPost = '$.entity.classification == "post"';

/** How many links may be unfinished at a stage and on the way to it, at a scraper of each board; what comes before waits. */
const backlog = 300;
/** Boards take turns at the gates, each with a backlog of its own; it is also the key by which `scrapes` learns. */
const board = { column: 'canonical_url', part: 'host' as const };
/** A classified link waits at its gate for room at the scrape: jobs at one gate, posts at the other. */
const route = (scrape: string) => ({
  kind: 'gate' as const,
  limits: { rate: { count: 120, perSeconds: minute }, concurrency: board, backPressure: { stage: scrape, backlog } },
  shows: { queued: 'classified', completed: 'classified' },
});
const scrape = {
  ...work,
  kind: 'external' as const,
  batchSize: 10,
  completion: scraped,
  limits: {
    // The work of one scraper and the next in line; more would only wait there.
    maxInFlight: 50,
    // A board that hangs leaves half of the places to the others.
    concurrency: { ...board, limit: 25 },
    shared: ['scrapes'],
  },
  shows: { queued: 'queued', started: 'scraping', completed: 'scraped', backoff: 'error' },
};
const stage = {
  ...work,
  apply: 'public.apply_staged',
  limits: { backPressure: { stage: 'extract', backlog } },
  shows: { queued: 'scraped', started: 'scraped', completed: 'staged', backoff: 'error' },
};

/** From a link to a job and its company. After a change run `npm run pipelines:sync`. */
export const links = definePipeline({
  name: 'links',
  entity: {
    table: 'public.linkedin_links',
    key: 'id',
    label: 'canonical_url',
    trace: 'trace_id',
    projection: 'status',
    status: {
      column: 'status',
      values: {
        work: {
          new: ['Waits to be told for a job or a post'],
          classified: ['Its kind is known, and it waits for room at the scraper'],
          queued: ['Waits for the scraper'],
          scraping: ['Its page is being fetched'],
          scraped: ['Its page is here, and waits to be understood'],
          staged: ['Its page is understood, and waits to become a job'],
          error: ['Waits for another try: see next_attempt_at and last_error'],
        },
        over: {
          extracted: ['All is known'],
          dead: ['Given up: see last_error, and write the word of the stage that is to go on'],
        },
      },
      failed: 'dead',
      // A person gives a link up, wherever it is: last_error says why.
      moves: ['new', 'classified', 'queued', 'scraping', 'scraped', 'staged', 'error'].map((word): [string, string] => [
        word,
        'dead',
      ]),
      history: { table: 'public.link_history', key: 'link_id', since: 'status_since', changes: 'note' },
      shared: ['classified', 'queued', 'scraping', 'scraped', 'staged', 'error'],
      attempts: 'attempt_count',
      retryAt: 'next_attempt_at',
      error: 'last_error',
    },
  },
  sla: { medianSeconds: 20 * minute, p95Seconds: 2 * hour },
  retention: { days: 60 },
  stages: {
    classify: {
      ...work,
      function: 'links-classify',
      completion: answered,
      apply: 'public.apply_classified',
      // A board whose links the model must tell leaves half of the places to the others.
      limits: { concurrency: { ...board, limit: 10 } },
      shows: { queued: 'new', started: 'new', completed: 'classified', backoff: 'error' },
    },
    route_job: { ...route('scrape_job'), needs: ['classify'], when: isJob },
    scrape_job: {
      ...scrape,
      function: 'links-scrape-job',
      needs: ['route_job'],
      when: isJob,
      apply: 'public.apply_scraped_jobs',
    },
    route_post: { ...route('scrape_post'), needs: ['scrape_job'], when: isPost },
    scrape_post: {
      ...scrape,
      function: 'links-scrape-post',
      needs: ['route_post'],
      when: isPost,
      apply: 'public.apply_scraped_posts',
    },
    stage_job: { ...stage, function: 'links-stage-job', needs: ['scrape_post'], when: isJob },
    stage_post: { ...stage, function: 'links-stage-post', needs: ['stage_job'], when: isPost },
    extract: {
      ...work,
      function: 'links-extract',
      timeoutSeconds: 40,
      leaseSeconds: 90,
      completion: { ...answered, deadlineSeconds: 40 },
      needs: ['stage_job', 'stage_post'],
      apply: 'public.apply_extracted',
      limits: { shared: ['model'] },
      // Links stay staged until somebody takes them up.
      whenSpent: 'bypass',
      shows: { queued: 'staged', started: 'staged', completed: 'extracted', backoff: 'error' },
    },
  },
});
