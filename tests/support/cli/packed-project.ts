// A project that the supabase CLI made and that has installed the tarballs, for tests that run the package's commands.
import { spawnSync } from 'node:child_process';
import type { EventEmitter } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { format, stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, vi } from 'vitest';
import { installPacked } from './packed.ts';

let loads = 0;
// The same ones for every command, since what runs a project's files keeps those that it found at first.
const written = { stdout: '', stderr: '' };
const takeOut = (text: unknown) => {
  written.stdout += stripVTControlCharacters(String(text));
  return true;
};
const takeError = (text: unknown) => {
  written.stderr += stripVTControlCharacters(String(text));
  return true;
};
const goOn = () => {};

/** The requests that a command listens to. */
function heard() {
  const events: [EventEmitter, string][] = [
    [process.stdout, 'error'],
    ...['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal): [EventEmitter, string] => [process, signal]),
  ];
  return events.flatMap(([emitter, event]) =>
    emitter.listeners(event).map((listener) => ({ emitter, event, listener: listener as () => void })),
  );
}

export class PackedProject {
  /** Holds the project, and other folders beside it. */
  readonly folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-package-'));
  readonly place = path.join(this.folder, 'app');
  readonly bin = path.join(this.place, 'node_modules', '.bin', 'millrace');
  tarball = '';
  devTarball = '';
  testTarball = '';

  /** Makes it before the tests of a file, and removes it after them. */
  constructor() {
    beforeAll(async () => {
      // Where root runs this, the database is another user's.
      fs.chmodSync(this.folder, 0o711);
      fs.mkdirSync(this.place);
      const { millrace, dev, test, begun } = await installPacked(this.place);
      this.tarball = millrace;
      this.devTarball = dev;
      this.testTarball = test;
      fs.cpSync(begun, this.place, { recursive: true });
    });
    afterAll(() => fs.rmSync(this.folder, { recursive: true, force: true }));
  }

  /** Runs a command of the package. */
  readonly millrace = (...args: string[]) => {
    const { PATH, HOME, GOGC, DENO_V8_FLAGS } = process.env;
    const { status, stdout, stderr } = spawnSync(this.bin, args, {
      cwd: this.place,
      encoding: 'utf8',
      // Far more than any takes: one that never ends fails its test.
      timeout: 150_000,
      // Deno's cache is at home. The others are how .ci/run spares the processor.
      env: { PATH, HOME, GOGC, DENO_V8_FLAGS },
    });
    return { status, stdout, stderr };
  };

  /**
   * Does in this process what `millrace` has another one do, which proves no more of what a command does with files, and takes Node, the
   * program and esbuild to be started. The packed program is loaded anew each time.
   */
  readonly here = (...args: string[]) => this.hereWith({}, ...args);

  /** The same, with more in its environment. */
  readonly hereWith = async (more: Record<string, string>, ...args: string[]) => {
    const { env, argv, exitCode, exit, stdout } = process;
    const { PATH, HOME, GOGC, DENO_V8_FLAGS } = env;
    const [folder, write, errorWrite] = [process.cwd(), stdout.write, process.stderr.write];
    const before = new Set(heard().map(({ listener }) => listener));
    written.stdout = '';
    written.stderr = '';
    const spies = [
      vi.spyOn(console, 'log').mockImplementation((...told) => void takeOut(`${format(...told)}\n`)),
      vi.spyOn(console, 'error').mockImplementation((...told) => void takeError(`${format(...told)}\n`)),
    ];
    process.chdir(this.place);
    Object.assign(process, {
      env: { PATH, HOME, GOGC, DENO_V8_FLAGS, ...more },
      argv: [argv[0], this.bin, ...args],
      exit: goOn,
    });
    Object.assign(stdout, { write: takeOut });
    Object.assign(process.stderr, { write: takeError });
    process.exitCode = undefined;
    try {
      const program = pathToFileURL(fs.realpathSync(this.bin)).href;
      await import(/* @vite-ignore */ `${program}?${loads++}`);
      return { status: Number(process.exitCode ?? 0), ...written };
    } finally {
      for (const { emitter, event, listener } of heard()) if (!before.has(listener)) emitter.off(event, listener);
      Object.assign(process.stderr, { write: errorWrite });
      Object.assign(stdout, { write });
      Object.assign(process, { env, argv, exitCode, exit });
      process.chdir(folder);
      for (const spy of spies) spy.mockRestore();
    }
  };

  /** All files of the project's own, or of another, with their texts. */
  readonly filesOf = (place = this.place): Record<string, string> => {
    const found = fs.readdirSync(place, { recursive: true, withFileTypes: true });
    const files = found.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
    return Object.fromEntries(
      files
        .map((file) => [path.relative(place, file), file] as const)
        .filter(([name]) => !name.startsWith('node_modules') && !name.startsWith('package'))
        .map(([name, file]) => [name, fs.readFileSync(file, 'utf8')]),
    );
  };

  /** A folder with these files beside the project, which uses its commands. */
  readonly folderWith = (files: Record<string, string>): string => {
    const place = fs.mkdtempSync(path.join(this.folder, 'other-'));
    for (const [name, text] of Object.entries(files)) write(place, name, text);
    return place;
  };
}

export function write(place: string, name: string, text: string): void {
  fs.mkdirSync(path.dirname(path.join(place, name)), { recursive: true });
  fs.writeFileSync(path.join(place, name), text);
}

/** A table as Supabase's guides have it. */
export const tables = `create table public.tickets (id bigint generated always as identity primary key, body text);
alter table public.tickets enable row level security;
revoke all on public.tickets from anon, authenticated, service_role;
grant select, insert, update, delete on public.tickets to service_role;
`;

/** A migration stamped so many seconds ago, after those that were written before. */
export const afterNow = (seconds: number) =>
  `supabase/migrations/${new Date(Date.now() - seconds * 1000).toISOString().replace(/\D/g, '').slice(0, 14)}_zz.sql`;
