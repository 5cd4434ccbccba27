// docs/security.md says who can do what: each of its lines names a test, and that test is there.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { docsFolder } from './page.ts';

const text = await readFile(path.join(docsFolder, 'security.md'), 'utf8');
const rows = text.split('\n').filter((line) => line.startsWith('| ') && !/^\| (---|.* \| test \|$)/.test(line));

/** The tests that a line names: the title of each, and its file. */
function testsOf(row: string): { title: string; file: string }[] {
  const proof = row.split(' | ').at(-1) ?? '';
  return [...proof.matchAll(/\[(.+?)\]\(\.\.\/(tests\/[a-z/-]+\.test\.ts)\)/g)].map(([, title = '', file = '']) => ({
    title,
    file: path.join(docsFolder, '..', file),
  }));
}

/** Whether a file has a test, or a group of tests, of exactly this title. */
async function hasTest({ title, file }: { title: string; file: string }): Promise<boolean> {
  if (!existsSync(file)) return false;
  const escaped = title.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(test|it|describe|\\]|\\))\\(\\s*(['"\`])${escaped}\\2`).test(await readFile(file, 'utf8'));
}

test('security.md is a page of lines, and README names it', async () => {
  expect(rows.length).toBeGreaterThan(40);
  expect(await readFile(path.join(docsFolder, '..', 'README.md'), 'utf8')).toContain('(docs/security.md)');
});

test.each(rows)('%s', async (row) => {
  const named = testsOf(row);
  expect(named, 'a line names at least one test').not.toEqual([]);
  for (const one of named) expect({ ...one, exists: await hasTest(one) }).toEqual({ ...one, exists: true });
});
