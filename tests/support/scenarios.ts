// Scenarios: files that play a whole project, an example or a fault through real processes, in up to minutes each. `npm test` runs
// all of them. A landing runs one of three shares of about the same length, drawn by the number of its commits.

/** Returns the files of a share: by folder of tests, their names. */
function share(folders: Record<string, string>): string[] {
  return Object.entries(folders).flatMap(([folder, names]) =>
    names.split(' ').map((name) => `tests/${folder}/${name}.test.ts`),
  );
}

export const scenarios: string[][] = [
  share({
    cli: 'demo demo-books live-upgrade package release',
    examples: 'articles-entry documents-extraction links-boards links-operated manuals',
    faults: 'articles-killed patterns-fan-out refused-writes',
    stack: 'functions-limits',
  }),
  share({
    cli: 'demo-articles functions-deploy whole-way',
    docs: 'testing',
    examples: 'documents sample-sites',
    faults: 'callbacks documents links-killed lost-messages patterns-within worn-isolates',
    runtime: 'agent-recovery batch-faults',
    stack: 'scraper-browser',
  }),
  share({
    cli: 'add demo-links trial',
    examples: 'articles-moves articles-orders books link-sources links-flow scrape-errors sources-poll',
    faults: 'killed-functions lost-leases',
    runtime: 'batch-prices',
    stack: 'stack stack-command',
  }),
];

/** The scenarios that are left to other landings; none where no number of commits is given. */
export function scenariosOfOthers(commits: string | undefined): string[] {
  if (!commits) return [];
  return scenarios.filter((_, index) => index !== Number(commits) % scenarios.length).flat();
}
