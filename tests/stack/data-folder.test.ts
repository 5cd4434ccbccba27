import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { takeDataFolder } from '../../local/platform/data-folder.ts';

let parent: string;
beforeEach(() => {
  parent = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-test-'));
  fs.chmodSync(parent, 0o755);
});
afterEach(() => {
  fs.rmSync(parent, { recursive: true, force: true });
});

/** Runs `work` as somebody whom the rights of files stop, whoever runs the tests. */
function asNobody(work: () => void): void {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    work();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

it('a stack makes its data folder with its parents, and lets it go again', () => {
  const wanted = path.join(parent, 'a', 'b');
  const { folder, release } = takeDataFolder(wanted);
  expect(fs.statSync(wanted).isDirectory()).toBe(true);
  expect(() => takeDataFolder(wanted)).toThrow('is in use by another stack');
  release();
  expect(fs.readdirSync(folder)).toEqual([]);
  takeDataFolder(wanted).release();
});

it('a stack refuses a folder that a living process has, and takes over from one that is gone', () => {
  const holder = spawn('sleep', ['60']);
  const lock = path.join(parent, 'stack.pid');
  fs.writeFileSync(lock, `${holder.pid}\n`);
  try {
    expect(() => takeDataFolder(parent)).toThrow(
      `The data folder ${parent} is in use by another stack, process ${holder.pid}: stop that one or name another ` +
        `folder. If it is no stack, remove ${lock}.`,
    );
    expect(fs.readFileSync(lock, 'utf8')).toBe(`${holder.pid}\n`);
  } finally {
    holder.kill('SIGKILL');
  }
  // An earlier process may have had any id, this one's too, or have died before it wrote one.
  for (const left of [2 ** 22 + 1, process.pid, '']) {
    fs.writeFileSync(lock, `${left}\n`);
    takeDataFolder(parent).release();
  }
});

it('the error names a path that is no folder', () => {
  const file = path.join(parent, 'file');
  fs.writeFileSync(file, '');
  expect(() => takeDataFolder(file)).toThrow(`The data folder ${file} is a file: name a folder`);
  expect(() => takeDataFolder(path.join(file, 'x'))).toThrow('lies below a file');
});

it('the error names where the stack may not write, in a folder that is there and in one that is not', () => {
  fs.chmodSync(parent, 0o555);
  for (const folder of [parent, path.join(parent, 'x')]) {
    asNobody(() => expect(() => takeDataFolder(folder)).toThrow(`${folder} cannot be written: you have no right to.`));
  }
});

it.runIf(process.getuid?.() === 0)('makes no folder that the user whom Postgres runs as cannot reach', () => {
  const closed = path.join(parent, 'closed');
  fs.mkdirSync(closed, { mode: 0o700 });
  const wanted = path.join(closed, 'a', 'b');
  expect(() => takeDataFolder(wanted)).toThrow(`let others enter ${closed} (chmod o+x).`);
  expect(fs.readdirSync(closed)).toEqual([]);
  fs.chmodSync(closed, 0o711);
  takeDataFolder(wanted).release();
});

it.runIf(process.platform === 'linux')('answers at once where nobody can make a folder', () => {
  for (const folder of ['/proc/x', '/proc/x/y']) {
    expect(() => takeDataFolder(folder)).toThrow(`The data folder ${folder} cannot be made there`);
  }
});
