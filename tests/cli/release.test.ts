// `npm run release` in a copy of the project that has a repository of its own.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { uninstallSql } from '../../cli/engine/build.ts';
import { buildMigration } from '../../cli/engine/migration.ts';
import { frozenFaults, lastRelease, readProject } from '../../cli/engine/releases.ts';
import { release, uninstallFile } from '../../cli/release.ts';

const project = path.join(import.meta.dirname, '..', '..');
let root: string;
const git = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t.test', ...args], { cwd: root });
const append = (file: string, text: string) => fs.appendFileSync(path.join(root, 'engine', file), text);
const setVersion = (version: string) => fs.writeFileSync(path.join(root, 'package.json'), JSON.stringify({ version }));

/** What `npm run check -- --write` does with the built files. */
async function write(): Promise<string> {
  const built = await buildMigration(readProject(root));
  if (built?.instead) fs.renameSync(built.instead, built.file);
  if (built) fs.writeFileSync(built.file, built.text);
  fs.writeFileSync(uninstallFile(root), await uninstallSql(path.join(root, 'engine')));
  return path.basename(built?.file ?? '');
}

const commit = () => {
  git('add', '-A');
  git('commit', '-qm', 'more');
};

beforeAll(() => {
  root = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-release-'));
  fs.cpSync(path.join(project, 'engine'), path.join(root, 'engine'), { recursive: true });
  fs.rmSync(path.join(root, 'engine', 'releases'), { recursive: true, force: true });
  fs.rmSync(path.join(root, 'engine', 'uninstall.sql'), { force: true });
  fs.mkdirSync(path.join(root, 'supabase', 'migrations'), { recursive: true });
  setVersion('0.1.0');
  git('init', '-q');
});

afterAll(() => fs.rmSync(root, { recursive: true, force: true }));

test('a release is refused with the remedy until all is built and committed, and freezes once', async () => {
  await expect(release(root)).rejects.toThrow(
    'What is built of engine/ is out of date: run `npm run check -- --write`',
  );
  const first = await write();
  expect(first).toMatch(/^\d{14}_millrace_0\.1\.0\.sql$/);
  await expect(release(root)).rejects.toThrow('Some files are not committed');
  commit();
  expect(await release(root)).toContain('Level 1 is frozen as release 0.1.0: engine/releases/0001_0.1.0.json.');
  await expect(release(root)).rejects.toThrow('Level 1 is frozen already, as release 0.1.0');
  expect(await buildMigration(readProject(root))).toBeNull();
  commit();

  // What is frozen stays as it is.
  const structure = '0002_schema.sql';
  const before = fs.readFileSync(path.join(root, 'engine', 'structure', structure));
  append(`structure/${structure}`, '\n-- A word more.\n');
  append('structure/0001a_early.sql', 'create table millrace.early (id int);\n');
  append('../supabase/migrations/'.concat(first), '\n');
  expect(frozenFaults(readProject(root))).toEqual([
    `supabase/migrations/${first} is frozen by release 0.1.0: restore it`,
    `engine/structure/${structure} is frozen by release 0.1.0: restore it, and change tables in a new file`,
    expect.stringMatching(/^engine\/structure\/0001a_early.sql must have a number after .*, which is released$/),
    'package.json says 0.1.0, which is released: raise it',
  ]);
  git('checkout', '-q', '.');
  git('clean', '-qfd');
  expect(fs.readFileSync(path.join(root, 'engine', 'structure', structure))).toEqual(before);

  // The next change builds an upgrade, in a file that follows every other; it takes a new version along.
  append('structure/9001_more.sql', 'create table millrace.more (id int);\n');
  await expect(release(root)).rejects.toThrow('package.json says 0.1.0, which is released: raise it');
  setVersion('0.2.0');
  const early = await write();
  setVersion('0.3.0');
  const second = await write();
  expect(second).toBe(early.replace('0.2.0', '0.3.0'));
  expect(fs.readdirSync(path.join(root, 'supabase', 'migrations'))).toEqual([first, second].sort());
  expect(second > first).toBe(true);
  commit();
  expect(await release(root)).toContain('Level 2 is frozen as release 0.3.0');
  expect(lastRelease(path.join(root, 'engine'))).toMatchObject({ level: 2, migration: second });
});
