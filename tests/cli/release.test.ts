// `npm run release` in a copy of the project that has a repository of its own, and what is built until then.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isBuilt } from '../../tools/engine/built.mjs';
import { buildMigration } from '../../tools/engine/migration.ts';
import { frozenFaults, lastRelease, readProject } from '../../tools/engine/releases.ts';
import { writeBuilt } from '../../tools/engine/write-built.ts';
import { release } from '../../tools/release.ts';

const project = path.join(import.meta.dirname, '..', '..');
let root: string;
const git = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t.test', ...args], { cwd: root, encoding: 'utf8' });
const file = (...parts: string[]) => path.join(root, ...parts);
const append = (name: string, text: string) => fs.appendFileSync(file('engine', name), text);
const setVersion = (version: string) => fs.writeFileSync(file('package.json'), JSON.stringify({ version }));
const migrations = () => fs.readdirSync(file('supabase', 'migrations')).sort();

const commit = () => {
  git('add', '-A');
  git('commit', '-qm', 'more');
};

beforeAll(() => {
  root = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-release-'));
  for (const part of ['engine', 'tools/engine', 'tools/check/public-surface.ts', '.gitignore']) {
    fs.cpSync(path.join(project, part), file(part), { recursive: true });
  }
  fs.rmSync(file('engine', 'releases'), { recursive: true, force: true });
  fs.rmSync(file('engine', 'uninstall.sql'), { force: true });
  fs.mkdirSync(file('supabase', 'migrations'), { recursive: true });
  setVersion('0.1.0');
  git('init', '-q');
});

afterAll(() => fs.rmSync(root, { recursive: true, force: true }));

test('a built file is written where it or one of its sources has changed, and is never committed', async () => {
  const [migration, uninstall] = [
    file('supabase', 'migrations', '20261101000000_millrace.sql'),
    file('engine', 'uninstall.sql'),
  ];
  expect(isBuilt(root)).toBe(false);
  await writeBuilt(root);
  expect(isBuilt(root)).toBe(true);
  expect(fs.readFileSync(migration, 'utf8')).toContain(`release := '0.1.0'`);
  commit();
  expect(git('ls-files')).not.toMatch(/_millrace\.sql|^engine.uninstall\.sql/m);

  const inode = () => fs.statSync(migration).ino;
  const before = inode();
  await writeBuilt(root);
  expect(inode()).toBe(before);
  for (const change of [
    () => append('structure/0002_kernel_schema.sql', '\n-- A word more.\n'),
    () => setVersion('0.1.1'),
    () => fs.appendFileSync(migration, '-- Written by hand.\n'),
    () => fs.rmSync(uninstall),
  ]) {
    change();
    expect(isBuilt(root)).toBe(false);
    await writeBuilt(root);
    expect(isBuilt(root)).toBe(true);
    expect(fs.readFileSync(migration, 'utf8')).not.toContain('Written by hand');
    expect(fs.existsSync(uninstall)).toBe(true);
  }
  git('checkout', '-q', '.');
});

test('a release is refused with the remedy until all is committed, and freezes once', async () => {
  append('structure/0002_kernel_schema.sql', '\n-- A word more.\n');
  await expect(release(root)).rejects.toThrow('Some files are not committed');
  git('checkout', '-q', '.');
  const first = '20261101000000_millrace_0.1.0.sql';
  expect(await release(root)).toContain(
    `Level 1 is frozen as release 0.1.0. Commit\n  supabase/migrations/${first}\n  engine/releases/0001_0.1.0.json\n`,
  );
  await expect(release(root)).rejects.toThrow('Level 1 is frozen already, as release 0.1.0');
  expect(await buildMigration(readProject(root))).toBeNull();
  expect(migrations()).toEqual([first]);
  commit();
  expect(git('ls-files', 'supabase')).toContain(first);

  // A level that is frozen stays as it is.
  append('structure/0002_kernel_schema.sql', '\n-- A word more.\n');
  append('structure/0001a_early.sql', 'create table millrace.early (id int);\n');
  append(`../supabase/migrations/${first}`, '\n');
  expect(frozenFaults(readProject(root))).toEqual([
    `supabase/migrations/${first} is frozen by release 0.1.0: restore it`,
    'engine/structure/0002_kernel_schema.sql is frozen by release 0.1.0: restore it, and change tables in a new file',
    expect.stringMatching(/^engine\/structure\/0001a_early.sql must have a number after .*, which is released$/),
    'package.json says 0.1.0, which is released: raise it',
  ]);
  git('checkout', '-q', '.');
  git('clean', '-qfd');
  expect(frozenFaults(readProject(root))).toEqual([]);

  // The next change builds an upgrade right after the release, which takes the version that it has in the end.
  append('structure/9001_more.sql', 'create table millrace.more (id int);\n');
  await expect(release(root)).rejects.toThrow('package.json says 0.1.0, which is released: raise it');
  await writeBuilt(root);
  expect(migrations()).toEqual([first, '20261101000001_millrace.sql']);
  setVersion('0.3.0');
  commit();
  expect(await release(root)).toContain('Level 2 is frozen as release 0.3.0');
  const second = '20261101000001_millrace_0.3.0.sql';
  expect(migrations()).toEqual([first, second]);
  expect(lastRelease(file('engine'))).toMatchObject({ level: 2, migration: second });
});
