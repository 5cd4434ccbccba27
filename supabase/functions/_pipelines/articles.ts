import { definePipeline } from '../_millrace/mod.ts';
import { closed, drawn, moves, unreachableBy, values } from './articles-codes.ts';
import { completion, modelWork, ownWork } from './stage-defaults.ts';

/** The order of enrichment: any will do, since each stage reads the row and none the others' results. */
const order = ['summarize', 'tag', 'thumbnail'] as const;

const before = (stage: (typeof order)[number]) => [order[order.indexOf(stage) - 1] ?? ('score' as const)];
const enrichment = { ...modelWork, concurrency: 20 };
const year = 365 * 24 * 3600;

/** The status of a ready, a working and a finished step. */
const step = (ready: number) => ({ queued: ready, started: ready + 1, completed: ready + 2 });

const verdict = (...verdicts: string[]) => ({
  schema: {
    type: 'object' as const,
    properties: { verdict: { enum: verdicts }, note: { type: 'string' as const } },
    required: ['verdict'],
  },
  deadlineSeconds: year,
});

/** From an address to a publication, by way of a curator. After a change run `npm run pipelines:sync`. */
export const articles = definePipeline({
  name: 'articles',
  entity: {
    table: 'public.ingestion_queue',
    key: 'id',
    projection: 'status',
    startableBy: ['authenticated'],
    status: {
      column: 'status_code',
      values,
      layers: {
        discovery: { stages: ['fetch', 'score'], enter: 100 },
        enrichment: { stages: [...order], enter: 200, leave: 240 },
      },
      failed: 500,
      ends: { duplicate: 520, irrelevant: 530, rejected: 540 },
      shared: [320, 330, 410],
      closed,
      moves,
      // A new article whose URL or text is known.
      entries: [520],
      drawn,
      lookup: 'public.status_lookup',
      history: {
        table: 'public.status_history',
        key: 'queue_id',
        since: 'status_changed_at',
        changes: 'status_changes',
      },
    },
  },
  // Of what a user adds; an article that no user has added is charged to itself.
  quota: {
    column: 'charged_to',
    starts: { count: 100, perSeconds: 3600 },
    spending: { usd: 5, perSeconds: 24 * 3600 },
  },
  stages: {
    fetch: {
      ...ownWork,
      kind: 'external',
      function: 'articles-fetch',
      batchSize: 5,
      maxWorkers: 2,
      // PDFs of one batch are read one after the other.
      leaseSeconds: 90,
      timeoutSeconds: 45,
      apply: 'public.articles_apply_fetch',
      completion,
      // The work of one scraper and the next in line; more would only wait there.
      limits: { maxInFlight: 50 },
      given: '$.entity.content != null || $.entity.summary != null',
      ends: { duplicate: '$.entity.is_copy == true' },
      shows: { ...step(110), failed: unreachableBy },
    },
    score: {
      ...enrichment,
      function: 'articles-score',
      needs: ['fetch'],
      apply: 'public.articles_apply_score',
      // An article entered by hand is relevant: a person has decided so.
      when: '$.entity.entered_as != "manual"',
      // An article with a summary of its own is relevant to its author.
      given: '$.entity.summary != null',
      ends: { irrelevant: '$.result.relevant == false' },
      shows: step(120),
    },
    summarize: {
      ...enrichment,
      function: 'articles-summarize',
      needs: before('summarize'),
      apply: 'public.articles_apply_summarize',
      given: '$.entity.summary != null',
      shows: step(210),
    },
    tag: {
      ...enrichment,
      function: 'articles-tag',
      needs: before('tag'),
      apply: 'public.articles_apply_tag',
      given: '$.entity.tags != null',
      shows: step(220),
    },
    // An image takes most of what a function has of CPU and memory, which workers share that are in one isolate.
    thumbnail: {
      ...ownWork,
      maxWorkers: 2,
      function: 'articles-thumbnail',
      needs: before('thumbnail'),
      apply: 'public.articles_apply_thumbnail',
      given: '$.entity.thumbnail_url != null',
      shows: step(230),
    },
    review: {
      kind: 'manual',
      needs: order.slice(-1),
      decision: verdict('approve', 'reject'),
      slaSeconds: 3 * 24 * 3600,
      ends: { rejected: '$.result.decision.verdict == "reject"' },
      shows: {
        asked: 300,
        interim: [310, 320],
        interimMoves: [
          [300, 310],
          [310, 320],
          [310, 300],
          [320, 310],
        ],
        answers: {
          330: { from: [310, 320], decision: { verdict: 'approve' } },
          540: { from: [310, 320], decision: { verdict: 'reject' } },
        },
      },
    },
    publish: {
      ...ownWork,
      batchSize: 10,
      function: 'articles-publish',
      needs: ['review'],
      apply: 'public.articles_apply_publish',
      shows: { queued: 330, started: 330, completed: 400 },
    },
    revise: {
      kind: 'manual',
      onDemand: true,
      needs: ['publish'],
      decision: verdict('save'),
      shows: {
        asked: 320,
        answers: { 410: { from: [320], decision: { verdict: 'save' } } },
        discard: true,
      },
    },
    republish: {
      ...ownWork,
      batchSize: 10,
      function: 'articles-republish',
      needs: ['revise'],
      apply: 'public.articles_apply_publish',
      shows: { queued: 410, started: 410, completed: 410 },
    },
  },
});
