import type { NextSteps } from '../next-steps.ts';

/** Returns where to look next after the articles' demo; `reviewUrl` leads to the review page and brings a token along. */
export function articleSteps(siteUrl: string, reviewUrl: string): NextSteps {
  return {
    keep: ['npm run demo -- articles --keep', ', with a page for the review'],
    addresses: [
      ['Review page', reviewUrl],
      ['Sample site', siteUrl],
    ],
    statements: [
      ['select * from article_backlog;', 'where articles pile up'],
      ['select address, kind, found, last_error from source;', 'the sources'],
      ['update ingestion_queue set status_code = 110 where status_code = 510;', 'tries those again'],
    ],
    commands: [['npm run demo -- articles --url https://…', 'does the same for feeds and sitemaps of your choice.']],
    note: 'Read on: docs/examples/articles.md, docs/patterns/status.md.',
  };
}
