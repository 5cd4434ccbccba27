// Postgres refuses to run as root. As root, it is run as `nobody`, who must be able to reach its programs and data.
import fs from 'node:fs';
import path from 'node:path';

export interface UnixUser {
  uid: number;
  gid: number;
}

/** Returns the user to run Postgres as: undefined for an ordinary user, `nobody` for root. Throws where root has no `nobody`. */
export function postgresUser(): UnixUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const entry = fs.existsSync('/etc/passwd') ? fs.readFileSync('/etc/passwd', 'utf8').match(/^nobody:.*$/m)?.[0] : '';
  const [, , uid, gid] = (entry ?? '').split(':');
  if (!uid || !gid) {
    throw new Error('Postgres does not run as root and /etc/passwd has no user "nobody": run as an ordinary user.');
  }
  return { uid: Number(uid), gid: Number(gid) };
}

/** Returns the folder on the way to `target`, or `target` itself, that others may not enter. `target` need not be there yet. */
export function closedToOthers(target: string): string | undefined {
  for (let folder = path.resolve(target); ; folder = path.dirname(folder)) {
    const stat = fs.existsSync(folder) ? fs.statSync(folder) : undefined;
    if (stat?.isDirectory() && (stat.mode & 0o001) === 0) return folder;
    if (folder === path.dirname(folder)) return undefined;
  }
}
