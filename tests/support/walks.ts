// Walks: files that take a project the whole way of a user, by packed packages, npm and real commands, in minutes of processor time.
// `npm test` runs all of them. A landing runs one of the shares, of about a third each, drawn by the number of its commits.

export const walks: string[][] = [
  ['tests/cli/package.test.ts'],
  ['tests/cli/whole-way.test.ts', 'tests/cli/trial.test.ts'],
  ['tests/cli/live-upgrade.test.ts', 'tests/cli/add.test.ts'],
];

/** The walks that are left to other landings; none where no number of commits is given. */
export function walksOfOthers(commits: string | undefined): string[] {
  if (!commits) return [];
  return walks.filter((_, share) => share !== Number(commits) % walks.length).flat();
}
