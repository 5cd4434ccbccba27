// Runs a file or Vitest of this project, after installing what is missing. Plain JavaScript without dependencies, since it runs
// before there are any: node tools/bootstrap.mjs <file.ts|file.mjs|vitest> [arguments]
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, fstatSync, readFileSync, rmSync, statfsSync, statSync } from 'node:fs';
import path from 'node:path';
import { isatty } from 'node:tty';
import { fileURLToPath } from 'node:url';
import { isBuilt } from './engine/built.mjs';
import { arePagesBuilt } from './pages/pages-built.mjs';

const projectFolder = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const modulesFolder = path.join(projectFolder, 'node_modules');
const untried = ['linux-arm64', 'darwin-x64'];
const parent = process.ppid;
const hasStarterGone = watchStarter();

/** Returns why this cannot run here, or an empty string. */
function obstacle() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    return `Node ${process.versions.node} is too old: install Node 20.19 or newer (https://nodejs.org).`;
  }
  const platform = `${process.platform}-${process.arch}`;
  if (platform === 'darwin-arm64') {
    return 'There is no PostgREST program for darwin-arm64 in npm: run this on Linux (a virtual machine or container).';
  }
  if (platform !== 'linux-x64' && !untried.includes(platform)) {
    return `The stack does not run on ${platform}: use Linux (on Windows, WSL 2).`;
  }
  if (platform === 'linux-x64' && !process.report.getReport().header.glibcVersionRuntime) {
    return 'Deno and Postgres need glibc: use a Linux distribution with glibc, not musl (Alpine).';
  }
  return '';
}

/** npm writes its list of what it installed last, so that list is older than the lock file after a change. */
function isInstalled() {
  const installed = path.join(modulesFolder, '.package-lock.json');
  if (!existsSync(installed)) return false;
  return statSync(installed).mtimeMs >= statSync(path.join(projectFolder, 'package-lock.json')).mtimeMs;
}

/** Space on disk for the dependencies, and for the files that npm keeps while it installs them. */
const neededMegabytes = 1000;

function requireRoom() {
  const { bavail, bsize } = statfsSync(projectFolder);
  const free = Math.floor((bavail * bsize) / 1e6);
  if (free >= neededMegabytes) return;
  console.error(
    `No space is left in ${projectFolder}: ${free} MB are free there, ${neededMegabytes} MB are needed for the dependencies. ` +
      'Make room, or clone into another folder.',
  );
  process.exit(1);
}

function install() {
  requireRoom();
  console.error('Installing dependencies (once, about 900 MB on disk; this takes a minute or two) …');
  const started = Date.now();
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  // Versions come from the lock file. Not "npm ci": it begins by removing all that is installed, which after a change of the
  // lock file is most of what is wanted, and may be in use.
  const args = ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'];
  // On standard error, so that what a command prints as its result stays clean.
  const { status, error } = spawnSync(npm, args, { cwd: projectFolder, stdio: ['ignore', 2, 2] });
  if (error || status !== 0) {
    // A half-made folder must not pass for an installation at the next try.
    rmSync(path.join(modulesFolder, '.package-lock.json'), { force: true });
    console.error(
      error ? `npm could not be started: ${error.message}` : `npm install failed with exit code ${status}.`,
    );
    process.exit(1);
  }
  console.error(`Installed in ${Math.round((Date.now() - started) / 1000)} s.`);
}

/** Builds the files that install the engine. The build itself prints its errors. */
function build() {
  const args = ['--import', 'tsx', path.join(projectFolder, 'tools', 'build.ts')];
  spawnSync(process.execPath, args, { cwd: projectFolder, stdio: ['ignore', 2, 2] });
  if (!isBuilt(projectFolder)) process.exit(1);
}

/** Returns the parent of a process and the name of its program. Undefined when it or /proc is gone. */
function lookUp(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const end = stat.lastIndexOf(')');
    return { name: stat.slice(stat.indexOf('(') + 1, end), parent: Number(stat.slice(end + 2).split(' ')[1]) };
  } catch {
    return undefined;
  }
}

/** Returns whether a shell started this at a terminal, whose end it hears of, or in the background: it may outlive that shell. */
function mayOutlive(starter) {
  if (!/^(ba|da|z|k|fi)?sh$/.test(lookUp(starter)?.name ?? '')) return false;
  return isatty(0) || fstatSync(0).rdev === statSync('/dev/null').rdev;
}

/** Returns how to tell that whoever started this has gone, killed or not. npm, where it stands between, hands nothing on. */
function watchStarter() {
  const isByNpm = Boolean(process.env.npm_lifecycle_event);
  const starter = isByNpm ? lookUp(parent)?.parent : parent;
  const isFree = starter === undefined || mayOutlive(starter);
  return () => {
    if (process.ppid !== parent) return isByNpm || !isFree;
    return isByNpm && !isFree && lookUp(parent)?.parent !== starter;
  };
}

function run(target, args) {
  const command =
    target === 'vitest'
      ? [path.join(modulesFolder, 'vitest', 'vitest.mjs'), ...args]
      : [...(target.endsWith('.mjs') ? [] : ['--import', 'tsx']), path.join(projectFolder, target), ...args];
  // The channel tells a long-running child when this process has ended, however it ended.
  const stdio = target === 'vitest' ? 'inherit' : ['inherit', 'inherit', 'inherit', 'ipc'];
  const child = spawn(process.execPath, command, { cwd: projectFolder, stdio });
  // At a terminal the child hears Ctrl-C too; forwarding covers a signal sent to this process alone.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  const watch = setInterval(() => {
    if (!hasStarterGone()) return;
    clearInterval(watch);
    child.kill('SIGTERM');
  }, 1000);
  watch.unref();
  child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' ? 130 : 143)));
}

const [target, ...args] = process.argv.slice(2);
if (!target) {
  console.error('Usage: node tools/bootstrap.mjs <file.ts|vitest> [arguments]');
  process.exit(2);
}
const reason = obstacle();
if (reason) {
  console.error(reason);
  process.exit(1);
}
if (!isInstalled()) install();
if (!isBuilt(projectFolder) || !arePagesBuilt(projectFolder)) build();
run(target, args);
