import type { NextSteps } from '../next-steps.ts';

/** Where to look next after the articles' demo; `reviewUrl` leads to the review page and brings a token along. */
export function articleSteps(siteUrl: string, reviewUrl: string): NextSteps {
  return {
    keep: ['npm run demo -- articles --keep', ', with a page for the review'],
    addresses: [
      ['Review page', reviewUrl],
      ['Sample site', siteUrl],
    ],
    statements: [
      ['select * from article_backlog;', 'where articles pile up'],
      ['select * from article_state_times;', 'how long they stood at each code'],
      ['select * from publication_edit_history;', 'what was edited after it was published'],
      ['select name, kind, found, last_error from source;', 'the sources'],
      ["update source set next_poll_at = now() where name = 'feed';", 'polls one at once'],
      ['select * from millrace.status_moves;', 'which codes may follow which'],
      ['update ingestion_queue set status_code = 110 where status_code = 510;', 'tries those again'],
    ],
    commands: [['npm run demo -- articles --url https://…', 'does the same for feeds and sitemaps of your choice.']],
    note: 'Read on: docs/examples/articles.md, docs/patterns/status.md.',
  };
}
