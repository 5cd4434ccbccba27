// By what a page is known again: the database leaves out the same parameters as the reader of feeds does.
import fc from 'fast-check';
import { expect } from 'vitest';
import { cleanUrl, trackingParameters } from '../../supabase/functions/_articles/clean-url.ts';
import { test } from '../support/articles.ts';

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
    `select prosrc as text from pg_proc where oid = 'public.url_fingerprint(text)'::regprocedure`,
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
