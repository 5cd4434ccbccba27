// Postgres refuses to run as root. As root, it is run as `nobody`, who must be able to reach its programs and data.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { realWorkers } from './extensions.ts';

export interface UnixUser {
  uid: number;
  gid: number;
}

/** The user to run Postgres as: undefined for an ordinary user, `nobody` for root. Throws where root has no `nobody`. */
export function postgresUser(): UnixUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const entry = fs.existsSync('/etc/passwd') ? fs.readFileSync('/etc/passwd', 'utf8').match(/^nobody:.*$/m)?.[0] : '';
  const [, , uid, gid] = (entry ?? '').split(':');
  if (!uid || !gid) {
    throw new Error('Postgres does not run as root and /etc/passwd has no user "nobody": run as an ordinary user.');
  }
  return { uid: Number(uid), gid: Number(gid) };
}

/** The folder on the way to `target`, or `target` itself, that others may not enter. `target` need not be there yet. */
export function closedToOthers(target: string): string | undefined {
  for (let folder = path.resolve(target); ; folder = path.dirname(folder)) {
    const stat = fs.existsSync(folder) ? fs.statSync(folder) : undefined;
    if (stat?.isDirectory() && (stat.mode & 0o001) === 0) return folder;
    if (folder === path.dirname(folder)) return undefined;
  }
}

/**
 * The Postgres programs at a place where `user` can run them: the given folder, or a copy under the system's temp
 * folder when it lies below a folder closed to others (root's home, say).
 */
export function reachablePostgres(folder: string, user: UnixUser | undefined): string {
  if (!user || !closedToOthers(folder)) return folder;
  const stamp = fs.statSync(path.join(folder, 'bin', 'postgres'));
  const parts = [folder, stamp.size, stamp.mtimeMs, ...realWorkers(folder)];
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

/** Makes the library links that npm packages cannot carry, as listed in pg-symlinks.json. */
export function linkLibraries(folder: string): void {
  const list = path.join(folder, 'pg-symlinks.json');
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
