// Which extensions a database gets, a test's own too: the real ones where its Postgres has them, else the stand-ins.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  hasSafeUpdate,
  installExtensions,
  knownExtensions,
  oldCronNotice,
  realWorkers,
} from '../../local/platform/extensions.ts';

let folder: string;
let controls: string;
let postgres: { extensions: string; libraries: string };
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-extensions-'));
  controls = path.join(folder, 'extension');
  postgres = { extensions: controls, libraries: path.join(folder, 'lib') };
  for (const made of Object.values(postgres)) fs.mkdirSync(made);
});
afterEach(() => fs.rmSync(folder, { recursive: true }));

const real = `comment = 'Async HTTP'\ndefault_version = '0.20.4'\n`;
const write = (name: string, text: string) => fs.writeFileSync(path.join(controls, name), text);
const read = (name: string) => fs.readFileSync(path.join(controls, name), 'utf8');

test('an extension that is really installed stays as it is, and gets no script of the stand-in', () => {
  write('pg_net.control', real);
  installExtensions(postgres);
  expect(read('pg_net.control')).toBe(real);
  expect(fs.readdirSync(controls).filter((file) => file.startsWith('pg_net--'))).toEqual([]);
  expect(realWorkers(postgres)).toEqual(['pg_net']);
});

test('a pg_cron of before 1.5 knows no seconds: the stand-in takes its place, and how to have a newer one is told', () => {
  const notice = () => oldCronNotice({ installedExtensions: controls });
  expect(notice()).toBeUndefined();
  write('pg_cron.control', `default_version = '1.4-1'\n`);
  expect(notice()).toMatch(/^The pg_cron of this Postgres is 1\.4, .* need 1\.5 or newer: .*make install PG_CONFIG=/);
  installExtensions(postgres);
  expect(read('pg_cron.control')).toContain(`comment = 'Stand-in`);
  write('pg_cron.control', `default_version = '1.6'\n`);
  expect(notice()).toBeUndefined();
  installExtensions(postgres);
  expect(read('pg_cron.control')).toBe(`default_version = '1.6'\n`);
  expect(realWorkers(postgres)).toEqual(['pg_cron']);
});

test('the others are stand-ins, and a stand-in of before is written anew', () => {
  installExtensions(postgres);
  const control = read('pg_cron.control');
  expect(control).toContain(`comment = 'Stand-in`);
  write('pg_cron.control', `comment = 'Stand-in of before'\n`);
  installExtensions(postgres);
  expect(read('pg_cron.control')).toBe(control);
  expect(knownExtensions(postgres)).toEqual(expect.arrayContaining(['pg_cron', 'pg_net', 'supabase_vault']));
});

test('an extension that comes with Postgres and that hosted lets postgres create is trusted, once', () => {
  write('bloom.control', `default_version = '1.0'\n`);
  installExtensions(postgres);
  installExtensions(postgres);
  expect(read('bloom.control')).toBe(`default_version = '1.0'\ntrusted = true\n`);
});

test('safeupdate is there as a library alone', () => {
  expect(hasSafeUpdate(postgres)).toBe(false);
  fs.writeFileSync(path.join(postgres.libraries, 'safeupdate.so'), '');
  expect(hasSafeUpdate(postgres)).toBe(true);
});
