import { execFile } from 'node:child_process';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { docsFolder, pagesFolder, readPage, writeExamples } from './page.ts';

const projectFolder = path.join(pagesFolder, '..', '..');
const names = (await readdir(pagesFolder)).map((file) => path.basename(file, '.md'));
/** Pages beside the patterns that have examples of pipelines. */
const docs = ['costs', 'deadlines', 'model-stages', 'services'];
const schema = await readFile(
  path.join(projectFolder, 'supabase/functions/_millrace/define/definition-schema.ts'),
  'utf8',
);

test.for(names)('%s.md is a page of 40 to 95 lines with the sections of all', async (name) => {
  const { text } = await readPage(name);
  expect(text.match(/^## .*/gm)).toEqual([
    '## Example',
    '## What happens',
    '## Choices',
    '## What goes wrong',
    '## Watch it',
  ]);
  const lines = text.trimEnd().split('\n').length;
  expect(lines).toBeGreaterThanOrEqual(40);
  expect(lines).toBeLessThanOrEqual(95);
  const long = text.split('\n').filter((line) => line.length > 130 && !line.startsWith('|'));
  expect(long).toEqual([]);
});

test.for(names)('%s.md: its scenario is played by a test, and the index names it', async (name) => {
  const played = await readFile(path.join(import.meta.dirname, `${name}.test.ts`), 'utf8');
  expect(played).toContain(`testPage('${name}')`);
  expect(await readFile(path.join(projectFolder, 'docs', 'README.md'), 'utf8')).toContain(`(patterns/${name}.md)`);
});

test.for(names)('%s.md: what it links to is there', async (name) => {
  const { text } = await readPage(name);
  const links = [...text.matchAll(/\]\(([a-z-]+)\.md\)/g)].map(([, link]) => link);
  expect(links.filter((link) => !names.includes(link ?? ''))).toEqual([]);
});

test.for(names)('%s.md: the options among its choices can be given', async (name) => {
  const { text } = await readPage(name);
  const choices = /^## Choices\n(.*?)(?=^## )/ms.exec(text)?.[1] ?? '';
  const options = [...choices.matchAll(/^\| `([A-Za-z.]+)` \|/gm)].flatMap(([, option]) => option?.split('.') ?? []);
  expect(options.filter((option) => !new RegExp(`(?:^\\s*|\\{ )${option}\\b`, 'm').test(schema))).toEqual([]);
});

test.for(docs)('%s.md: its statements are run by a test, and the index names it', async (name) => {
  const played = await readFile(path.join(import.meta.dirname, `${name}.test.ts`), 'utf8');
  expect(played).toContain(`testPage('${name}', docsFolder)`);
  expect(await readFile(path.join(projectFolder, 'docs', 'README.md'), 'utf8')).toContain(`(${name}.md)`);
});

test('llms.txt lists every page that the index lists, and each is there', async () => {
  const pagesOf = (text: string) => [...text.matchAll(/\]\(([\w/-]+\.md)\)/g)].map(([, page = '']) => page);
  const listed = pagesOf(await readFile(path.join(docsFolder, 'llms.txt'), 'utf8'));
  const indexed = pagesOf(await readFile(path.join(docsFolder, 'README.md'), 'utf8'));
  expect(indexed.filter((page) => !listed.includes(page))).toEqual([]);
  for (const page of listed) await readFile(path.join(docsFolder, page), 'utf8');
});

test('the README begins with the commands and has 120 lines at most', async () => {
  const readme = await readFile(path.join(projectFolder, 'README.md'), 'utf8');
  expect(readme.slice(0, 900)).toContain('npx millrace dev');
  expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(120);
});

test('the README states the figures that the benchmark has of the chain', async () => {
  const figuresOf = (text = '') => text.match(/\d+,\d{3}\b/g);
  const [readme = '', benchmark = ''] = await Promise.all(
    ['README.md', 'docs/benchmark.md'].map((file) => readFile(path.join(projectFolder, file), 'utf8')),
  );
  const [, stated] = /^## How fast$(.*?)^## /ms.exec(readme) ?? [];
  const [measured] = /^\| five-stage chain, .*batch 50\b.*$/m.exec(benchmark) ?? [];
  expect(figuresOf(stated)).toHaveLength(4);
  expect(figuresOf(stated)).toEqual(figuresOf(measured));
});

test('the examples of all pages pass the type checker', async () => {
  const pages = await Promise.all([
    ...names.map((name) => readPage(name)),
    ...docs.map((name) => readPage(name, docsFolder)),
  ]);
  const folder = await writeExamples(pages.flatMap((page) => page.examples));
  onTestFinished(() => rm(folder, { recursive: true }));
  const examples = pages.flatMap((page) => page.examples.map((example) => example.path));
  const config = { extends: path.join(projectFolder, 'tsconfig.json'), include: examples, exclude: [] };
  await writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify(config));
  const tsc = path.join(projectFolder, 'node_modules', '.bin', 'tsc');
  const checked = promisify(execFile)(tsc, ['-p', '.', '--pretty', 'false', '--singleThreaded'], { cwd: folder });
  const { stdout } = await checked.catch((error: { stdout: string }) => error);
  // Another fault of the project is another check's to say.
  const faults = stdout.split('\n').filter((line) => examples.some((example) => line.startsWith(example)));
  expect(faults).toEqual([]);
});
