// Which stack commands find, where more than one runs over a project.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findRunningStack, noteRunningStack } from '../../local/platform/running-stack.ts';

let project: string;
const dbUrl = 'postgresql://postgres@127.0.0.1:3/postgres';
beforeEach(() => {
  project = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-note-'));
});
afterEach(() => fs.rmSync(project, { recursive: true }));

/** Leaves the note of another process. */
function noteOf(pid: number): void {
  noteRunningStack(project, { apiUrl: 'http://127.0.0.1:1', secretKey: 'a', dbUrl });
  const file = path.join(project, 'supabase', '.temp', 'millrace-stack.json');
  fs.writeFileSync(file, JSON.stringify({ ...JSON.parse(fs.readFileSync(file, 'utf8')), pid }));
}

test('the newest stack is found, and the one before it once the newest has ended', () => {
  noteOf(process.ppid);
  const end = noteRunningStack(project, { apiUrl: 'http://127.0.0.1:2', secretKey: 'b', dbUrl });
  expect(findRunningStack(project)?.apiUrl).toBe('http://127.0.0.1:2');
  end();
  expect(findRunningStack(project)).toEqual({ apiUrl: 'http://127.0.0.1:1', secretKey: 'a', dbUrl, pid: process.ppid });
});

test('the note of a stack that died does not come back', () => {
  // No system numbers a process this high.
  noteOf(2 ** 30);
  noteRunningStack(project, { apiUrl: 'http://127.0.0.1:2', secretKey: 'b', dbUrl })();
  expect(fs.readdirSync(path.join(project, 'supabase', '.temp'))).toEqual([]);
});
