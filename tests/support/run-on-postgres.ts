// npm run test:postgres -- 15: the tests of the engine on another major version of Postgres: npm's of that version, fetched once, or
// Debian's. Folders or files after it are run instead of tests/engine; --sample runs what a commit draws of them.
// npm run test:postgres -- /usr/lib/postgresql/15: the tests of the stack, those of faults and a chaos campaign on an installed one.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { embeddedPostgres } from '../../local/platform/binaries.ts';
import { packedVersions } from '../../local/platform/choose-postgres.ts';
import { oldCronNotice, realWorkers } from '../../local/platform/extensions.ts';
import { postgresFiles } from '../../local/platform/postgres-files.ts';
import { sampleOf } from './sample-of-tests.ts';

const root = path.join(import.meta.dirname, '..', '..');
/** The part of tests/engine that a landing runs: about a quarter of a minute, and the start of its server. */
const parts = 32;
const [major = '', ...given] = process.argv.slice(2);
const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs');
if (major.includes('/')) process.exit(runInstalled(path.resolve(major), given));
const version = packedVersions[Number(major)];
if (!version) {
  console.error(
    `npm run test:postgres -- MAJOR|DIR [--sample] [FILE …], where MAJOR is one of ${Object.keys(packedVersions).join(', ')}`,
  );
  process.exit(2);
}
const isSample = given.includes('--sample');
const chosen = isSample ? drawn() : given;
const postgres = fetched() ?? (isSample ? undefined : fail());
if (!postgres) {
  console.log(`No Postgres ${major} can be had here, so that the engine's tests on it did NOT run.`);
  process.exit(0);
}
if (isSample) console.log(`On Postgres ${major}: ${chosen.join(' ')}`);
process.exit(runVitest(postgres, chosen.length > 0 ? chosen : ['tests/engine']));

function runVitest(folder: string, args: string[], settings: Record<string, string> = {}): number {
  const env = { ...process.env, ...settings, MILLRACE_POSTGRES: folder };
  return spawnSync(process.execPath, [vitest, 'run', ...args], { cwd: root, stdio: 'inherit', env }).status ?? 1;
}

/** Runs what meets the extensions of an installed Postgres, the real pg_cron above all. */
function runInstalled(folder: string, files: string[]): number {
  process.env.MILLRACE_POSTGRES = folder;
  const postgres = postgresFiles();
  const cron = realWorkers(postgres).includes('pg_cron') ? 'the real pg_cron' : 'the stand-in of pg_cron';
  console.log(`On Postgres ${postgres.version} of ${folder}, with ${cron}.`);
  const notice = oldCronNotice(postgres);
  if (notice) console.log(notice);
  const tests = runVitest(folder, files.length > 0 ? files : ['tests/stack', 'tests/faults']);
  if (tests !== 0 || files.length > 0) return tests;
  const campaigns = { CHAOS_CAMPAIGNS: process.env.CHAOS_CAMPAIGNS ?? '1' };
  return runVitest(folder, ['--config', 'vitest.soak.config.ts', 'chaos'], campaigns);
}

/** Where that Postgres is: fetched before, Debian's without pg_cron, whose stand-in the tests count on, or fetched now. */
function fetched(): string | undefined {
  const folder = path.join(root, '.cache', `postgres-${version}`);
  const packed = path.join(folder, 'node_modules', embeddedPostgres, 'native');
  if (fs.existsSync(packed)) return packed;
  const ofDebian = `/usr/lib/postgresql/${major}`;
  const isPlain = !fs.existsSync(`/usr/share/postgresql/${major}/extension/pg_cron.control`);
  if (fs.existsSync(path.join(ofDebian, 'bin', 'postgres')) && isPlain) return ofDebian;
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, 'package.json'), '{"private": true}');
  try {
    execFileSync('npm', ['install', '--no-audit', '--no-fund', `${embeddedPostgres}@${version}`], {
      cwd: folder,
      stdio: 'inherit',
      timeout: 60_000,
    });
    return packed;
  } catch {
    return undefined;
  }
}

function fail(): never {
  console.error(`npm does not fetch ${embeddedPostgres}@${version}: see above.`);
  process.exit(1);
}

/** The test files that this commit draws. */
function drawn(): string[] {
  const commit = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).stdout?.trim();
  const names = fs.readdirSync(path.join(root, 'tests', 'engine'), { recursive: true, encoding: 'utf8' });
  const files = names
    .filter((name) => name.endsWith('.test.ts') && name !== 'text-growth.test.ts')
    .map((name) => ({
      file: path.posix.join('tests', 'engine', name),
      bytes: fs.statSync(path.join(root, 'tests', 'engine', name)).size,
    }));
  return sampleOf(files, commit || new Date().toISOString(), parts);
}
