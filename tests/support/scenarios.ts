// Scenarios: files that play a whole project, an example, a page or a fault through real processes, in up to minutes each.
// `npm test` runs all of them. A landing runs one of five shares of about the same length, drawn by the number of its commits.

/** Returns the files of a share: by folder of tests, their names. */
function share(folders: Record<string, string>): string[] {
  return Object.entries(folders).flatMap(([folder, names]) =>
    names.split(' ').map((name) => `tests/${folder}/${name}.test.ts`),
  );
}

export const scenarios: string[][] = [
  share({
    cli: 'pipelines-sync release trial-branch whole-way',
    examples: 'articles-moves documents-extraction sample-sites',
    faults: 'callbacks links-killed',
    runtime: 'agent-recovery',
    stack: 'operate-entry stack-command',
  }),
  share({
    cli: 'demo-articles demo-books demo-links functions-deploy package',
    docs: 'testing',
    examples: 'settings-errors',
    faults: 'patterns-within',
    stack: 'operate-commands review-page stack',
  }),
  share({
    cli: 'demo',
    examples: 'articles-entry documents links-boards links-operated',
    faults: 'articles-killed killed-functions worn-isolates',
    runtime: 'batch-faults batch-thrift',
    stack: 'functions-limits pg-cron',
  }),
  share({
    cli: 'live-upgrade trial',
    examples: 'articles-orders link-sources links-flow manuals',
    faults: 'lost-messages patterns-fan-out refused-writes',
    runtime: 'own-workers',
    stack: 'pg-net scraper-browser',
  }),
  share({
    cli: 'add package-check',
    examples: 'books scrape-errors sources-poll',
    faults: 'documents lost-leases',
    runtime: 'batch-prices',
    stack: 'operate-actions operate-lists operate-page operate-servers',
  }),
];

/** The scenarios that are left to other landings; none where no number of commits is given. */
export function scenariosOfOthers(commits: string | undefined): string[] {
  if (!commits) return [];
  return scenarios.filter((_, index) => index !== Number(commits) % scenarios.length).flat();
}
