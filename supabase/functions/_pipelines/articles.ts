import { definePipeline } from '../_millrace/mod.ts';
import { completion, modelWork, ownWork } from './stage-defaults.ts';

const enrichment = { ...modelWork, batchSize: 5 };

/** From an address to a publication, by way of a curator. After a change run `npm run pipelines:sync`. */
export const articles = definePipeline({
  name: 'articles',
  entity: { table: 'public.ingestion_queue', key: 'id', projection: 'none' },
  stages: {
    fetch: {
      ...ownWork,
      kind: 'external',
      function: 'articles-fetch',
      batchSize: 10,
      maxWorkers: 2,
      apply: 'public.articles_apply_fetch',
      completion,
      // What one scraper has in work and next in line; more would only wait there.
      limits: { maxInFlight: 50 },
    },
    score: {
      ...enrichment,
      function: 'articles-score',
      needs: ['fetch'],
      apply: 'public.articles_apply_score',
    },
    summarize: {
      ...enrichment,
      function: 'articles-summarize',
      needs: ['score'],
      apply: 'public.articles_apply_summarize',
    },
    tag: { ...enrichment, function: 'articles-tag', needs: ['summarize'], apply: 'public.articles_apply_tag' },
    // An image takes most of what a function has of CPU and memory, which workers share that are in one isolate.
    thumbnail: {
      ...ownWork,
      maxWorkers: 2,
      function: 'articles-thumbnail',
      needs: ['tag'],
      apply: 'public.articles_apply_thumbnail',
    },
    publish: {
      ...ownWork,
      batchSize: 10,
      function: 'articles-publish',
      needs: ['thumbnail'],
      apply: 'public.articles_apply_publish',
    },
    republish: {
      ...ownWork,
      batchSize: 10,
      function: 'articles-republish',
      needs: ['publish'],
      apply: 'public.articles_apply_publish',
    },
  },
});
