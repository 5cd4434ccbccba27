import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { chain, test as withEngine } from '../support/engine.ts';
import { failed, Worker } from '../support/worker.ts';

const project = path.join(import.meta.dirname, '..', '..');

// The codes that TypeScript throws or answers, and those that SQL writes into errors, the log and its own exceptions.
const inCode = [
  /\b(?:Permanent|Retriable|Unavailable)Error\(\s*'([a-z_]+)'/g,
  /\bsuper\('([a-z_]+)'/g,
  /\brefuse\(\d+, '([a-z_]+)'/g,
  /error: \{ code: '([a-z_]+)'/g,
  /\bmissing: \{\s*code: '([a-z_]+)'/g,
];
const inSql = [
  /(?<!->>? )'code', '([a-z_]+[a-z])'/g,
  /"code": "([a-z_]+)"/g,
  /\b(?:report|values )\(\s*'(?:info|warning|error)',\s*'([a-z_]+)'/g,
  /\breport_caught\([^']*'([a-z_]+)'/g,
  // MR000 never leaves the engine.
  /(MR(?!000)\d{3})/g,
];

/** Codes that the code puts together or chooses: an agent's limits, a quota's amounts, ends of a batch, parts of a source. */
const composed = [
  ...['turns', 'tokens', 'cost', 'time'].map((what) => `agent_${what}_exceeded`),
  ...['starts', 'spending'].map((kind) => `quota_${kind}`),
  ...['expired', 'cancelled', 'rejected'].map((end) => `batch_${end}`),
  ...['sitemaps', 'feed_pages'].map((what) => `too_many_${what}`),
];

async function codesIn(folder: string, ending: string, patterns: RegExp[]): Promise<string[]> {
  const files = await readdir(path.join(project, folder), { recursive: true });
  const texts = await Promise.all(
    files.filter((file) => file.endsWith(ending)).map((file) => readFile(path.join(project, folder, file), 'utf8')),
  );
  // The examples in docstrings throw codes of their own.
  const codeOf = (text: string) => text.replaceAll(/^ *\/\*\*.*?\*\//gms, '');
  return texts
    .map(codeOf)
    .flatMap((text) => patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, code = '']) => code)));
}

const page = await readFile(path.join(project, 'docs/errors.md'), 'utf8');
const explained = page.split('\n').flatMap((line) => {
  const [, first = '', ...others] = line.split('|');
  const examples = first.includes('<service>') ? others.join('|') : '';
  return line.startsWith('| `') ? [...`${first} ${examples}`.matchAll(/`(\w+)`/g)].map(([, code]) => code) : [];
});

// The codes of the jobs of the local scraper and OCR service, whose table says which of them are for good.
const ofJobs = /permanentByCode = \{(.*?)\}/s.exec(
  await readFile(path.join(project, 'local/services/http/job-error.ts'), 'utf8'),
)?.[1];

const thrown = [
  ...[...(ofJobs ?? '').matchAll(/^ {2}(\w+):/gm)].map(([, code = '']) => code),
  ...(await codesIn('supabase/functions', '.ts', inCode)),
  ...(await codesIn('engine', '.sql', inSql)),
  ...(await codesIn('supabase/functions', '.sql', inSql)),
  ...composed,
];

test('errors.md explains every code that the engine, the runtime and the examples use', () => {
  expect([...new Set(thrown)].filter((code) => !explained.includes(code)).sort()).toEqual([]);
});

test('errors.md explains no code that nothing uses', () => {
  const ofServices = ['scraper', 'ocr'].map((service) => `${service}_unreachable`);
  const known = [...thrown, ...ofServices];
  expect(explained.filter((code) => code !== undefined && !known.includes(code))).toEqual([]);
});

test('errors.md explains each code once in a table', () => {
  const twice = explained.filter((code, place) => explained.indexOf(code) !== place && code !== 'misconfigured');
  expect(twice).toEqual([]);
});

withEngine('the statement of errors.md counts dead letters by code', async ({ engine }) => {
  const statement = /```sql\n([^`]+)```/.exec(page)?.[1] ?? '';
  await engine.pipeline(chain(['one']));
  await engine.queued('one', 2);
  const worker = await Worker.of(engine, 'one');
  const error = { code: 'not_found', message: 'the page is gone', permanent: true };
  await worker.report(...(await worker.take()).map((item) => failed(item, error)));
  const at = await engine.now();
  expect(await engine.rows(statement)).toEqual([
    { pipeline: 'flow', stage: 'one', error_code: 'not_found', runs: '2', oldest: at, newest: at },
  ]);
});
