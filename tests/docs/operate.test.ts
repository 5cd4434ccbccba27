// The pages about the operator's page: they name its screens, show pictures that are there, and have queries that run.
import fs from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { projectTest as test } from '../support/engine.ts';

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

/** All pages that people read, as paths from the root. */
const pages = ['README.md', ...fs.readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })]
  .filter((name) => name.endsWith('.md'))
  .map((name) => (name === 'README.md' ? name : path.join('docs', name)));

/** The screens there are, by what the address calls each. */
const screens = new Map(
  [...read('pages/operate/screens.ts').matchAll(/^ {2}(\w+): \{ title: '([^']+)'/gm)].map(([, key, title]) => [
    key,
    title,
  ]),
);

test('each screen that a page of the docs names or shows is there, in light and dark, by at most 200 kB', () => {
  const named = pages.flatMap((page) => [...read(page).matchAll(/under \*\*([^*]+)\*\*/g)].map(([, title]) => title));
  expect(named.length).toBeGreaterThan(2);
  expect(named.filter((title) => ![...screens.values()].includes(title))).toEqual([]);
  const shown = pages.flatMap((page) =>
    [...read(page).matchAll(/(?:src|srcset)="([^"]*pictures\/[^"]+)"/g)].map(([, file = '']) =>
      path.join(path.dirname(page), file),
    ),
  );
  const names = new Set(shown.map((file) => path.basename(file).replace(/-(light|dark)\.png$/, '')));
  expect([...names].filter((name) => !screens.has(name))).toEqual([]);
  expect(names).toContain('overview');
  for (const name of names) {
    for (const theme of ['light', 'dark']) {
      const file = path.join('docs', 'pictures', `${name}-${theme}.png`);
      expect(shown).toContain(file);
      expect(fs.statSync(path.join(root, file)).size).toBeLessThanOrEqual(200_000);
    }
  }
});

test('each view that docs/dashboard.md says to open is there, and its queries run', async ({ engine }) => {
  const text = read('docs/dashboard.md');
  const named = [...text.matchAll(/^\| `(millrace\.\w+)` \|/gm)].map(([, name]) => name);
  expect(named.length).toBeGreaterThan(3);
  for (const name of named) expect(await engine.value('select to_regclass($1)::text', [name])).toBe(name);
  const queries = [...text.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, query = '']) => query);
  expect(queries.length).toBeGreaterThan(4);
  for (const query of queries) await engine.sql.query(query);
});
