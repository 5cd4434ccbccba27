// The pages about the operator's page: they name its screens, show pictures that are there, and have queries that run.
import fs from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { test } from '../support/engine.ts';

const root = path.join(import.meta.dirname, '..', '..');
const read = (file: string) => fs.readFileSync(path.join(root, file), 'utf8');

test('docs/operate.md names each screen, and no other', () => {
  const titles = [...read('pages/operate/screens.ts').matchAll(/\{ title: '([^']+)'/g)].map(([, title]) => title);
  const table =
    /\| screen \| what is on it \|\n\| --- \| --- \|\n((?:\|.*\n)+)/.exec(read('docs/operate.md'))?.[1] ?? '';
  const named = [...table.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, names = '']) => names.split(', '));
  expect(titles.length).toBeGreaterThan(8);
  expect(named.toSorted()).toEqual(titles.toSorted());
});

test('the pictures that README shows are there, in light and dark, of at most 200 kB each', () => {
  const shown = [...read('README.md').matchAll(/(?:src|srcset)="(docs\/pictures\/[^"]+)"/g)].map(
    ([, file = '']) => file,
  );
  expect(shown.toSorted()).toEqual(
    ['overview', 'run'].flatMap((name) => ['dark', 'light'].map((theme) => `docs/pictures/${name}-${theme}.png`)),
  );
  for (const file of shown) expect(fs.statSync(path.join(root, file)).size).toBeLessThanOrEqual(200_000);
});

test('what docs/dashboard.md says to open is there, and its queries run', async ({ engine }) => {
  const text = read('docs/dashboard.md');
  const named = [...text.matchAll(/^\| `(millrace\.\w+)` \|/gm)].map(([, name]) => name);
  expect(named.length).toBeGreaterThan(3);
  for (const name of named) expect(await engine.value('select to_regclass($1)::text', [name])).toBe(name);
  const queries = [...text.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, query = '']) => query);
  expect(queries.length).toBeGreaterThan(4);
  for (const query of queries) await engine.sql.query(query);
});
