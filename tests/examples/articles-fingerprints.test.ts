// By what a page is known again: the database leaves out the same parameters as the reader of feeds does.
import { readFile } from 'node:fs/promises';
import fc from 'fast-check';
import { expect } from 'vitest';
import { cleanUrl, trackingParameters } from '../../supabase/functions/_articles/clean-url.ts';
import { test } from '../support/examples/articles.ts';

const page = 'https://a.test/x?id=7';
const prefixes = fc.constantFrom('utm', 'pk', 'mtm', 'piwik', 'matomo');
const marks = fc.oneof(
  fc.constantFrom(...trackingParameters),
  fc.tuple(prefixes, fc.stringMatching(/^_[a-z0-9]{0,8}$/)).map((parts) => parts.join('')),
);
/** Names that are left out, in capitals too, nearly such names, and others. */
const names = fc.oneof(
  marks,
  marks.map((name) => name.toUpperCase()),
  fc.tuple(marks, fc.stringMatching(/^[a-z0-9_.-]$/)).map(([name, more]) => name + more),
  marks.map((name) => name.slice(0, -1)),
  fc.stringMatching(/^[a-z_]{1,6}$/),
);
const pairs = fc.tuple(names, fc.constantFrom('', '=', '=1', '=a%20b', '=x=y')).map((parts) => parts.join(''));

test('an address’s fingerprint leaves out what its reader does, and nothing else', async ({ engine }) => {
  const [source] = await engine.rows<{ text: string }>(
    `select prosrc as text from pg_proc where oid = 'public.tracking_parameters(text)'::regprocedure`,
  );
  // Every name that either of them knows is among these.
  const known = [...trackingParameters, ...(source?.text.match(/\w+/g) ?? [])];
  const urls = [...known, ...fc.sample(pairs, 2000)].map((pair) => `${page}&${pair}`);
  const rows = await engine.rows<{ url: string; left_out: boolean }>(
    `select url, public.url_fingerprint(url) = public.url_fingerprint($2) as left_out from unnest($1::text[]) url`,
    [urls, page],
  );
  expect(rows.filter(({ url, left_out }) => left_out !== (cleanUrl(url) === page))).toEqual([]);
  expect(rows.filter(({ left_out }) => left_out).length).toBeGreaterThan(trackingParameters.length);
});

test('pages that become equal keep their rows, and the younger names the older', async ({ articles, engine }) => {
  const migration = await readFile('supabase/migrations/20261128090000_addresses_articles.sql', 'utf8');
  await engine.sql.query('begin');
  // As it was before: every spelling a page.
  await engine.sql.query(`create or replace function public.url_fingerprint(p_url text) returns text
    language sql immutable strict as $$ select 'url:' || md5(p_url) $$`);
  const urls = ['https://a.test/caf%C3%A9', 'https://m.a.test/cafe%cc%81/?ref_src=x', 'https://a.test/other'];
  const ids: string[] = [];
  for (const [n, url] of urls.entries()) {
    const { id } = await articles.insert({ url, entry_type: 'discovered', created_at: `2026-01-0${n + 1}` });
    ids.push(id);
  }
  await engine.sql.query(migration);
  const { rows } = await engine.sql.query(
    'select id, url, is_copy, duplicate_of, url_fingerprint is null as unclaimed from public.ingestion_queue order by created_at',
  );
  expect(rows).toEqual([
    { id: ids[0], url: urls[0], is_copy: false, duplicate_of: null, unclaimed: false },
    { id: ids[1], url: urls[1], is_copy: true, duplicate_of: ids[0], unclaimed: true },
    { id: ids[2], url: urls[2], is_copy: false, duplicate_of: null, unclaimed: false },
  ]);
  const unknown = await engine.sql.query('select public.unknown_urls($1) as urls', [
    ['http://www.a.test:80/caf\u00e9#top', 'https://a.test/new'],
  ]);
  expect(unknown.rows).toEqual([{ urls: ['https://a.test/new'] }]);
  await engine.sql.query('rollback');
});
