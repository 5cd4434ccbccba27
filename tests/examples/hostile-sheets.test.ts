// Sheets whose cells nobody meant well: a poll reads them within its bounds, and saves what can be saved.
import { expect, test } from 'vitest';
import { pollSource, type Save } from '../../supabase/functions/_links/poll-source.ts';
import { cellLinks, isBroken } from '../../supabase/functions/_services/sheets/cell-links.ts';
import { type SourceLink, textLinks } from '../../supabase/functions/_services/text-links.ts';

const limits = { reads: 5, links: 1_000_000, ms: 60_000 };

/** A source of one portion, and the calls by which it is saved. */
async function polled(links: SourceLink[]) {
  const calls: { links: SourceLink[]; before: unknown; at: unknown }[] = [];
  const save: Save = async (saved, before, at) => {
    calls.push({ links: saved, before, at });
    return { saved: true, found: saved.length, too_long: null };
  };
  const poll = await pollSource(1, async () => ({ links, cursor: 2, more: false }), save, limits);
  return { poll, calls };
}

test('closing punctuation is taken off an address, however much there is', () => {
  for (const end of ['.', ')', '.)', ']:', '_*~']) {
    expect(textLinks(`https://example.com/a${end.repeat(50_000 / end.length)}`)).toEqual(['https://example.com/a']);
  }
  expect(textLinks('(https://example.com/(a)_(b)). https://example.com/[1]]')).toEqual([
    'https://example.com/(a)_(b)',
    'https://example.com/[1]',
  ]);
});

test.each([
  ['请看https://example.com/工作。谢谢', ['https://example.com/工作']],
  ['見て「https://example.com/a」、https://example.com/b、または（https://example.com/c）', ['a', 'b', 'c']],
  ['« https://example.com/a» und „https://example.com/b“ “https://example.com/c”', ['a', 'b', 'c']],
  ['https://example.com/a\u200bhttps://example.com/b\ufeff https://example.com/c\u2060', ['a', 'b', 'c']],
  ['https://example.com/a… ‹https://example.com/b› https://example.com/c\u00a0d', ['a', 'b', 'c']],
  ['https://example.com/a，https://example.com/b；https://example.com/c！', ['a', 'b', 'c']],
  ['https://example.com/a． https://example.com/b～ https://example.com/c—see', ['a', 'b', 'c']],
  ['https://example.com/a، https://example.com/b؟ https://example.com/c।', ['a', 'b', 'c']],
])('an address ends where its writing does: %s', (text, found) => {
  expect(textLinks(text)).toEqual(found.map((part) => (part.length === 1 ? `https://example.com/${part}` : part)));
});

test('a link that was made of a written address, full stop and all, is one link', () => {
  const cell = { formattedValue: 'See https://example.com/x.', hyperlink: 'https://example.com/x.' };
  expect(cellLinks(cell, false)).toEqual(['https://example.com/x']);
  expect(cellLinks({ ...cell, formattedValue: 'See there.' }, false)).toEqual(['https://example.com/x.']);
});

test.each([
  ...['#N/A', '#REF!', '#NAME?', '#DIV/0!', '#BEZUG!', '#NV', '#ССЫЛКА!', '#¡REF!', '#¿NOMBRE?', '#DIV/0 !', '#I/T'],
  ...['Loading...', 'Wird geladen…'],
])('a cell that shows %s has no link', (formattedValue) => {
  expect([cellLinks({ formattedValue }, true), isBroken({ formattedValue })]).toEqual([[], true]);
});

test('a cell whose formula failed has no link, in whatever language it shows that', () => {
  const cell = { formattedValue: '#OEDD', effectiveValue: { errorValue: { type: 'N_A' } } };
  expect([cellLinks(cell, true), isBroken(cell)]).toEqual([[], true]);
});

test.each(['#hiring', '# 1', 'example.com/#N/A', 'Loading bay 3', '#1'])(
  'a cell that shows %s is taken as it is',
  (text) => {
    expect([cellLinks({ formattedValue: text }, true), isBroken({ formattedValue: text })]).toEqual([[text], false]);
  },
);

test('a range of more links than a call can carry is saved by several, and goes on after the last', async () => {
  const links = Array.from({ length: 200_001 }, (_, n) => ({ url: `https://example.com/${n}`, place: `T!A${n}` }));
  const { poll, calls } = await polled(links);
  expect(poll).toEqual({ found: 200_001, more: false, tooLong: null, broken: null });
  expect(calls.flatMap((call) => call.links)).toEqual(links);
  expect(Math.max(...calls.map((call) => call.links.length))).toBe(10_000);
  expect(calls.slice(0, -1).every(({ before, at }) => before === 1 && at === 1)).toBe(true);
  expect(calls.at(-1)).toMatchObject({ before: 1, at: 2 });
});

test('a link that Postgres could not store keeps no other from being saved', async () => {
  const { calls } = await polled([{ url: 'a \u0000 link of half a \ud83d', place: 'T\u0000!A1' }]);
  expect(calls[0]?.links).toEqual([{ url: 'a \ufffd link of half a \ufffd', place: 'T\ufffd!A1' }]);
});
