// Where the Postgres lies that is run: npm's, or one that the machine has of its own, such as Debian's in /usr/lib/postgresql/15,
// with whatever extensions that has.
import { execFileSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { packageVersion, postgresFolder } from './binaries.ts';
import { closedToOthers, postgresUser, type UnixUser } from './postgres-user.ts';

const librariesToLink = 'pg-symlinks.json';

/** Where the files of a Postgres lie. */
export interface PostgresFiles {
  /** The folder with its programs. */
  bin: string;
  /** The folder with the control files and scripts of its extensions. */
  extensions: string;
  /** The folder with those that were installed, where no stand-in has been put beside them. */
  installedExtensions: string;
  /** The folder with the libraries that it loads. */
  libraries: string;
  /** Major and minor version: 15.18. */
  version: string;
}

/**
 * The files of the Postgres that MILLRACE_POSTGRES names, else of npm's, at a place where Postgres can be run and stand-ins can be
 * put beside its extensions. Throws where there is none, or npm's package for the platform is missing.
 */
export function postgresFiles(): PostgresFiles {
  const named = process.env.MILLRACE_POSTGRES;
  if (named && !fs.existsSync(path.join(named, librariesToLink))) return mirroredFiles(path.resolve(named));
  const original = named || postgresFolder();
  linkLibraries(original);
  const folder = reachablePostgres(original, postgresUser());
  const extensions = path.join(folder, 'share', 'postgresql', 'extension');
  return {
    bin: path.join(folder, 'bin'),
    extensions,
    installedExtensions: extensions,
    libraries: path.join(folder, 'lib', 'postgresql'),
    version: packageVersion(original),
  };
}

/**
 * The files of the Postgres whose folder `bin` lies in `folder`, at a place where stand-ins can be put beside its extensions: a
 * folder of links below the system's temp folder. The programs are copies, since Postgres looks for all else from where they lie.
 * An extension that is installed later is found at the next start. Throws where `folder` holds no such Postgres.
 */
function mirroredFiles(folder: string): PostgresFiles {
  const { bin, share, libraries, version } = ask(folder);
  const above = commonFolder(bin, share);
  const controls = path.join(share, 'extension');
  const stamps = [path.join(bin, 'postgres'), controls].map((file) => `${file} ${fs.statSync(file).mtimeMs}`);
  const key = createHash('sha256')
    .update([version, ...stamps].join('\n'))
    .digest('hex')
    .slice(0, 16);
  const mirror = path.join(os.tmpdir(), `millrace-postgres-${key}`);
  if (!fs.existsSync(mirror)) {
    const draft = `${mirror}-${randomUUID()}`;
    const inDraft = (place: string) => path.join(draft, path.relative(above, place));
    fs.mkdirSync(draft, { mode: 0o755 });
    fs.cpSync(bin, inDraft(bin), { recursive: true, dereference: true });
    linkAll(share, inDraft(share), 'extension');
    linkAll(controls, inDraft(controls));
    fs.mkdirSync(path.dirname(inDraft(libraries)), { recursive: true });
    fs.symlinkSync(libraries, inDraft(libraries));
    try {
      fs.renameSync(draft, mirror);
    } catch {
      // Another process was faster.
      fs.rmSync(draft, { recursive: true });
    }
  }
  if (fs.statSync(mirror).uid !== (process.getuid?.() ?? 0)) {
    throw new Error(`${mirror} belongs to another user: remove it and start again.`);
  }
  const inMirror = (place: string) => path.join(mirror, path.relative(above, place));
  const extensions = { extensions: inMirror(controls), installedExtensions: controls };
  return { bin: inMirror(bin), ...extensions, libraries: inMirror(libraries), version };
}

/** Asks its pg_config where a Postgres has its files. */
function ask(folder: string): { bin: string; share: string; libraries: string; version: string } {
  const program = path.join(folder, 'bin', 'pg_config');
  if (!fs.existsSync(path.join(folder, 'bin', 'postgres')) || !fs.existsSync(program)) {
    throw new Error(
      `${folder} holds no Postgres: name the folder whose bin/ has postgres and pg_config, such as /usr/lib/postgresql/15.`,
    );
  }
  const [bin = '', share = '', libraries = '', version = ''] = execFileSync(
    program,
    ['--bindir', '--sharedir', '--pkglibdir', '--version'],
    { encoding: 'utf8' },
  ).split('\n');
  return { bin, share, libraries, version: /\d+(\.\d+)?/.exec(version)?.[0] ?? version };
}

/** Returns the folder nearest to both that holds them. */
function commonFolder(one: string, other: string): string {
  const [parts, others] = [one.split(path.sep), other.split(path.sep)];
  const differs = parts.findIndex((part, at) => part !== others[at]);
  return parts.slice(0, differs).join(path.sep) || path.sep;
}

/** Makes a folder with a link to each entry of another, but for one. */
function linkAll(from: string, to: string, but?: string): void {
  fs.mkdirSync(to, { recursive: true });
  for (const name of fs.readdirSync(from)) {
    if (name !== but) fs.symlinkSync(path.join(from, name), path.join(to, name));
  }
}

/**
 * The Postgres programs at a place where `user` can run them: the given folder, or a copy under the system's temp
 * folder when it lies below a folder closed to others (root's home, say).
 */
function reachablePostgres(folder: string, user: UnixUser | undefined): string {
  if (!user || !closedToOthers(folder)) return folder;
  const stamp = fs.statSync(path.join(folder, 'bin', 'postgres'));
  const parts = [folder, stamp.size, stamp.mtimeMs];
  const key = createHash('sha256').update(parts.join(' ')).digest('hex').slice(0, 16);
  const copy = path.join(os.tmpdir(), `millrace-postgres-${key}`);
  if (!fs.existsSync(copy)) {
    const draft = fs.mkdtempSync(`${copy}-`);
    execFileSync('cp', ['-a', `${folder}/.`, draft]);
    fs.chmodSync(draft, 0o755);
    try {
      fs.renameSync(draft, copy);
    } catch {
      fs.rmSync(draft, { recursive: true });
    }
  }
  if (fs.statSync(copy).uid !== 0) throw new Error(`${copy} belongs to another user: remove it and start again.`);
  return copy;
}

/** Makes the library links that npm packages cannot carry, as they list them. */
function linkLibraries(folder: string): void {
  const list = path.join(folder, librariesToLink);
  if (!fs.existsSync(list)) return;
  for (const { source, target } of JSON.parse(fs.readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const link = path.join(folder, '..', target);
    if (fs.existsSync(link)) continue;
    try {
      fs.symlinkSync(path.relative(path.dirname(link), path.join(folder, '..', source)), link);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}
