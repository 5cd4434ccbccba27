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
    cli: 'add demo-links release',
    examples: 'articles-entry documents links-boards settings-errors',
    faults: 'callbacks worn-isolates',
    stack: 'functions-limits operate-entry review-page',
  }),
  share({
    cli: 'demo package-check trial',
    examples: 'articles-moves manuals sample-sites',
    faults: 'patterns-within',
    runtime: 'agent-recovery batch-faults own-workers',
    stack: 'operate-actions',
  }),
  share({
    cli: 'demo-articles package',
    examples: 'links-flow sources-poll',
    faults: 'articles-killed documents lost-leases patterns-fan-out refused-writes',
    stack: 'operate-lists',
  }),
  share({
    cli: 'demo-books functions-deploy live-upgrade pipelines-sync',
    examples: 'articles-orders books',
    faults: 'killed-functions links-killed lost-messages',
    stack: 'scraper-browser stack',
  }),
  share({
    cli: 'whole-way',
    docs: 'testing',
    examples: 'documents-extraction link-sources links-operated scrape-errors',
    runtime: 'batch-prices batch-thrift',
    stack: 'operate-servers stack-command',
  }),
];

/** The scenarios that are left to other landings; none where no number of commits is given. */
export function scenariosOfOthers(commits: string | undefined): string[] {
  if (!commits) return [];
  return scenarios.filter((_, index) => index !== Number(commits) % scenarios.length).flat();
}
