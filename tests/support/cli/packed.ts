// The tarballs of `npm pack`, a project that has installed them, and one that the supabase CLI made: once for a whole Vitest run,
// since packing empties dist/, which another file may be packing.
import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { denoBinary } from '../../../local/platform/binaries.ts';
import { denoEnvironment, packageFlags } from '../../../local/platform/functions/deno-command.ts';

const root = path.join(import.meta.dirname, '..', '..', '..');

/** Paths of what users install. */
interface Packed {
  millrace: string;
  /** The local stack, `@millrace/dev`. */
  dev: string;
  /** The test helpers, `@millrace/test`. */
  test: string;
  /** A folder in which npm has installed all. */
  installed: string;
  /** How long that took. */
  installMs: number;
  /** The files that the supabase CLI makes of an empty folder `app`, with a function `greet`. */
  begun: string;
}

/**
 * Gives a project what `npm install` of the tarballs makes: package.json, the lock file and node_modules. Files of other packages are
 * those of all projects, by further names; millrace's own are the project's, which may change them.
 */
export async function installPacked(project: string): Promise<Packed> {
  const packed = await packedTarballs();
  const there = (name: string) => path.join(packed.installed, name);
  for (const name of ['package.json', 'package-lock.json']) fs.copyFileSync(there(name), path.join(project, name));
  execFileSync('cp', ['-al', there('node_modules'), project]);
  const own = path.join('node_modules', 'millrace');
  fs.rmSync(path.join(project, own), { recursive: true });
  fs.cpSync(there(own), path.join(project, own), { recursive: true });
  return packed;
}

/** The program that `npx millrace` runs in a project. It starts in a quarter of the time that the sources take. */
export async function packedProgram(): Promise<string> {
  const { installed } = await packedTarballs();
  return path.join(installed, 'node_modules', 'millrace', 'dist', 'millrace.mjs');
}

/** Packs all, or waits for the file of tests that does. Throws what npm said where it failed. */
export async function packedTarballs(): Promise<Packed> {
  const folder = path.join(inject('runFolder'), 'packed');
  const told = path.join(folder, 'told.json');
  if (startsPacking(folder)) {
    const packed = await pack(folder).catch((error: Error) => ({ error: error.message }));
    fs.writeFileSync(`${told}.part`, JSON.stringify(packed));
    fs.renameSync(`${told}.part`, told);
  }
  while (!fs.existsSync(told)) await sleep(50);
  const packed = JSON.parse(fs.readFileSync(told, 'utf8'));
  if (packed.error) throw new Error(packed.error);
  return packed;
}

/** Whether this is the first to ask. */
function startsPacking(folder: string): boolean {
  try {
    fs.mkdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

async function pack(folder: string): Promise<Packed> {
  const one = async (...args: string[]) => {
    const given = ['pack', '--json', '--pack-destination', folder, ...args];
    const { stdout } = await promisify(execFile)('npm', given, { cwd: root });
    return path.join(folder, JSON.parse(stdout.slice(stdout.indexOf('[\n')))[0].filename);
  };
  const tarballs = {
    millrace: await one(),
    dev: await one('-w', '@millrace/dev'),
    test: await one('-w', '@millrace/test'),
  };
  const installed = inject('installFolder');
  fs.writeFileSync(path.join(installed, 'package.json'), '{"name": "app", "private": true}\n');
  const quiet = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  const install = ['install', '--save-dev', ...quiet, ...Object.values(tarballs)];
  const began = Date.now();
  await promisify(execFile)('npm', install, { cwd: installed });
  const installMs = Date.now() - began;
  await fetchImports(installed);
  return { ...tarballs, installed, installMs, begun: beginProject(path.join(folder, 'app')) };
}

function beginProject(begun: string): string {
  fs.mkdirSync(begun);
  const supabase = path.join(root, 'node_modules', '.bin', 'supabase');
  for (const line of ['init --yes', 'functions new greet']) {
    execFileSync(supabase, line.split(' '), { cwd: begun, stdio: 'ignore' });
  }
  return begun;
}

/** Has Deno's cache hold what functions import: `check` weighs them by it, and fetches nothing. */
async function fetchImports(installed: string): Promise<void> {
  const manifest = path.join(installed, 'node_modules', 'millrace', 'dist', 'manifest.json');
  const imports = Object.values<string>(JSON.parse(fs.readFileSync(manifest, 'utf8')).imports);
  const env = { PATH: process.env.PATH, ...denoEnvironment('deno') };
  await promisify(execFile)(denoBinary(), ['cache', ...packageFlags('deno', undefined), ...imports], { env });
}
