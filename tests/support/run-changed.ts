// npm run test:changed: runs the tests that a change touches, be it committed since the branch left main or not. Vitest follows
// imports; what tests read or start as files, such as SQL, pages and whole functions, is listed here.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const project = path.join(import.meta.dirname, '..', '..');

/** Which test folders a changed file touches beyond those that import it. */
const readers: { changed: RegExp; folders: string[] }[] = [
  {
    changed: /\.sql$|^supabase\/config\.toml$/,
    folders: ['engine', 'docs', 'stack', 'faults', 'runtime', 'examples', 'cli'],
  },
  {
    changed: /^supabase\/functions\//,
    folders: ['faults', 'examples', 'cli', 'docs', 'runtime/deno.test.ts'],
  },
  { changed: /^(local|cli|tools)\//, folders: ['cli', 'stack'] },
  { changed: /\.md$/, folders: ['docs'] },
];

function git(...args: string[]): string[] {
  const { status, stdout } = spawnSync('git', args, { cwd: project, encoding: 'utf8' });
  return status === 0 ? stdout.split('\n').filter(Boolean) : [];
}

/** Files that differ from the commit at which this branch left main, or from the commit that was named. */
function changedFiles(since: string | undefined): string[] {
  const [left = 'HEAD'] = since
    ? [since]
    : [...git('merge-base', 'HEAD', 'origin/main'), ...git('merge-base', 'HEAD', 'main')];
  const changed = [...git('diff', '--name-only', left), ...git('ls-files', '--others', '--exclude-standard')];
  return [...new Set(changed)];
}

function testsIn(folder: string): string[] {
  const start = path.join(project, 'tests', folder);
  if (!fs.existsSync(start)) return [];
  if (folder.endsWith('.ts')) return [start];
  const names = fs.readdirSync(start, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.test.ts')).map((name) => path.join(start, name));
}

const changed = changedFiles(process.argv[2]);
const touched = readers.filter((reader) => changed.some((file) => reader.changed.test(file)));
const files = [
  ...changed.map((file) => path.join(project, file)).filter((file) => fs.existsSync(file)),
  ...touched.flatMap(({ folders }) => folders).flatMap(testsIn),
];
if (files.length === 0) {
  console.log('Nothing has changed.');
  process.exit(0);
}
// A test file is related to itself.
const vitest = path.join(project, 'node_modules', 'vitest', 'vitest.mjs');
const { status } = spawnSync(process.execPath, [vitest, 'related', '--run', '--passWithNoTests', ...new Set(files)], {
  cwd: project,
  stdio: 'inherit',
});
process.exit(status ?? 1);
