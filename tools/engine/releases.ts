// The releases that are frozen, in engine/releases/, and the one that engine/ is becoming.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { codeFor } from './build.ts';
import { codeOf } from './catalogue.ts';
import { codeFiles, sqlFiles, textOf } from './engine-sql.ts';
import type { Release, Target } from './release.ts';

/** Where a project keeps what belongs to its releases. */
export interface Project {
  /** The folder engine/. */
  engine: string;
  /** The folder supabase/migrations. */
  migrations: string;
  /** The version in package.json. */
  version: string;
}

const sha256 = (text: string | Buffer) => createHash('sha256').update(text).digest('hex');

/** Returns the project in `root`. */
export function readProject(root: string): Project {
  const { version } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
  return { engine: path.join(root, 'engine'), migrations: path.join(root, 'supabase', 'migrations'), version };
}

/** Returns all frozen releases, the oldest first. */
export function frozenReleases(engine: string): Release[] {
  const folder = path.join(engine, 'releases');
  if (!fs.existsSync(folder)) return [];
  const names = fs.readdirSync(folder).filter((name) => name.endsWith('.json'));
  const releases = names.map((name) => JSON.parse(fs.readFileSync(path.join(folder, name), 'utf8')) as Release);
  return releases.sort((a, b) => a.level - b.level);
}

/** Returns the newest frozen release; null when there is none. */
export const lastRelease = (engine: string): Release | null => frozenReleases(engine).at(-1) ?? null;

/** Returns the structure as it stands: its files with their digests. */
function structureNow(engine: string): Record<string, string> {
  return Object.fromEntries(
    sqlFiles(engine, 'structure').map((file) => [file, sha256(fs.readFileSync(path.join(engine, file)))]),
  );
}

/** Everything that an install or an upgrade is built from, as one digest. */
export function sourceDigest(engine: string): string {
  const files = [...sqlFiles(engine, 'structure'), ...codeFiles(engine)];
  return sha256(files.map((file) => `${file}\n${textOf(engine, file)}`).join('\n'));
}

/** Returns the release that engine/ is to become; null while it equals the last release. */
export function nextTarget({ engine, version }: Project): Target | null {
  const from = lastRelease(engine);
  if (from?.source === sourceDigest(engine)) return null;
  return { level: (from?.level ?? 0) + 1, version, from };
}

/**
 * Returns a line for each change to a frozen file, each new file before the frozen ones, and a version that is taken.
 */
export function frozenFaults(project: Project): string[] {
  const found = structureNow(project.engine);
  const releases = frozenReleases(project.engine);
  const faults = releases.flatMap(({ version, migration, migrationDigest, structure }) => {
    const file = path.join(project.migrations, migration);
    const isSame = fs.existsSync(file) && sha256(fs.readFileSync(file)) === migrationDigest;
    return [
      ...(isSame ? [] : [`supabase/migrations/${migration} is frozen by release ${version}: restore it`]),
      ...Object.entries(structure)
        .filter(([name, was]) => found[name] !== was)
        .map(([name]) => `engine/${name} is frozen by release ${version}: restore it, and change tables in a new file`),
    ];
  });
  const last = releases.at(-1);
  const frozen = Object.keys(last?.structure ?? {});
  const early = Object.keys(found).filter((name) => !frozen.includes(name) && name <= (frozen.at(-1) ?? ''));
  const taken = nextTarget(project) && releases.some(({ version }) => version === project.version);
  return [
    ...new Set(faults),
    ...early.map((name) => `engine/${name} must have a number after ${frozen.at(-1)}, which is released`),
    ...(taken ? [`package.json says ${project.version}, which is released: raise it`] : []),
  ];
}

/** Freezes what engine/ has become, with the migration of that name. Returns the file that holds it from now on. */
export async function freeze(project: Project, target: Target, migration: string): Promise<string> {
  const { engine } = project;
  const release: Release = {
    level: target.level,
    version: target.version,
    migration,
    migrationDigest: sha256(fs.readFileSync(path.join(project.migrations, migration))),
    structure: structureNow(engine),
    source: sourceDigest(engine),
    code: codeOf(await codeFor(engine, target)),
  };
  const name = `${String(target.level).padStart(4, '0')}_${target.version}.json`;
  const file = path.join(engine, 'releases', name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, `${JSON.stringify(release, null, 2)}\n`, { flag: 'wx' });
  return file;
}
