import fs from 'node:fs';
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  askVerdicts,
  codesOf,
  outcomeOf,
  statedVerdicts,
  type WaitingArticle,
} from '../../local/demo/articles/review-articles.ts';
import { countsTable } from '../../local/demo/articles/watch-articles.ts';
import { readArguments } from '../../local/demo/read-arguments.ts';
import { startNews } from '../../local/demo/samples/news/server.ts';
import { demoHere, temporaryFolder } from './demo-here.ts';

let temporary: string;

beforeEach(() => {
  temporary = temporaryFolder();
});
afterEach(() => {
  fs.rmSync(temporary, { recursive: true, force: true });
});

/** Does what `npm run demo -- articles` does with these arguments, with no settings but the defaults. */
function runArticles(...args: string[]) {
  const none = [
    'LLM_URL',
    'LLM_MODEL',
    'SCRAPER_URL',
    'SCRAPER_ALLOW_HOSTS',
    'FEED_ALLOW_HOSTS',
    'SOURCE_NEW_URLS',
    'SITE_HOOK_URL',
  ];
  const env = { TMPDIR: temporary, ...Object.fromEntries(none.map((name) => [name, ''])) };
  return demoHere(['articles', ...args], env);
}

describe.runIf(process.platform === 'linux')('npm run demo -- articles', () => {
  it('takes the sample site’s feeds to publications, shows each way in, a review, an edit and a history', async () => {
    const { code, stdout, stderr } = await runArticles();
    expect(code, `${stdout}${stderr}`).toBe(0);
    // Each manual entry begins by what it brings.
    for (const [says, begins] of [
      ['an address alone', 110],
      ['its content too', 200],
      ['a summary', 220],
      ['all of it', 300],
      ['an import with its content', 120],
      ['an address that is known', 520],
    ]) {
      expect(stdout).toContain(`${says}: begins at ${begins}`);
    }
    // Sources of every kind, and why the broken ones fail.
    expect(stdout).toMatch(/feed +rss +\d+\n/);
    expect(stdout).toMatch(/atom +atom +\d+\n/);
    expect(stdout).toMatch(/rdf +rdf +\d+\n/);
    expect(stdout).toMatch(/sitemap +sitemap_index +\d+\n/);
    expect(stdout).toMatch(/✗ broken\/page {2}\(broken on purpose\)\n +The address gives a web page/);
    expect(stdout).toMatch(/✗ broken\/busy {2}\(broken on purpose\)\n.*answered 429/);
    // Every end before a review.
    expect(stdout).toMatch(/500 failed +\S+\/2026\/gallery\n.*no readable text/);
    expect(stdout).toMatch(/510 unreachable +\S+\/2026\/gone\n.*404/);
    expect(stdout).toMatch(/520 duplicate +\S+\n +as http/);
    expect(stdout).toMatch(/530 irrelevant +\S+\/2026\/harbour-derby\n +score 0\.\d/);
    expect(stdout).not.toMatch(/530 irrelevant +\S+\/2026\/(balcony-beans|bicycle-kitchen)\n/);
    // Decisions, publications, an edit, and its history with durations and fields.
    expect(stdout).toContain('Nobody is at a terminal, so the demo decides');
    for (const codes of ['310 → 330', '310 → 320 → 330', '310 → 540']) expect(stdout).toContain(codes);
    expect(stdout.match(/^ +› /gm)?.length).toBeGreaterThan(10);
    expect(stdout).toContain('select track_publication_edit(');
    expect(stdout).toMatch(/^ +100 discovered +agent:poll/m);
    expect(stdout).toMatch(/210 to_summarize +211 summarizing +agent:summarize +\d+ ms/);
    expect(stdout).toMatch(/400 published +320 editing +user:demo +\d+ ms/);
    expect(stdout).toMatch(/320 editing +410 updated +user:demo +\d+ ms +title/);
    expect(stdout).toMatch(/title: ".*" → ".*, revised"/);
    expect(stdout).toMatch(/Invariants .*no violation/);
  }, 240_000);

  it('takes twenty articles of a feed that the user names, whatever they are about', async () => {
    const news = await startNews();
    try {
      const { code, stdout, stderr } = await runArticles('--url', `${news.url}/atom.xml`);
      expect(code, `${stdout}${stderr}`).toBe(0);
      expect(stdout).toContain('Of each source at most 20 articles are taken');
      expect(stdout).not.toMatch(/530 irrelevant/);
      expect(stdout).toMatch(/127\.0\.0\.1 +atom +7\n/);
    } finally {
      await news.stop();
    }
  }, 240_000);
});

it('names the arguments of the articles, and what is wrong with others', () => {
  expect(readArguments(['articles', '--keep'])).toMatchObject({ demo: 'articles', keep: true, urls: [] });
  const { urls } = readArguments(['articles', '--url', 'https://a.test/feed', 'https://b.test/sitemap.xml']);
  expect(urls.map(String)).toEqual(['https://a.test/feed', 'https://b.test/sitemap.xml']);
  expect(() => readArguments(['articles', 'https://a.test/feed'])).toThrow(
    '"https://a.test/feed" is no option: to run on a feed or sitemap write --url https://a.test/feed',
  );
  expect(() => readArguments(['articles', '--url', 'a.test'])).toThrow('no web address');
});

it('decides where nobody is there: edits the first, rejects the last, approves the others', () => {
  const waiting = ['a', 'b', 'c'].map(
    (title): WaitingArticle => ({ id: title, title, summary: '', tags: [], score: null }),
  );
  expect(statedVerdicts(waiting)).toEqual([
    { kind: 'edit', title: 'a (edited)' },
    { kind: 'approve' },
    { kind: 'reject' },
  ]);
  expect(statedVerdicts(waiting.slice(0, 2)).map(({ kind }) => kind)).toEqual(['edit', 'approve']);
  expect(codesOf({ kind: 'leave' })).toBe('left at 300');
});

/** Answers each question of the review in turn, then ends the input; resolves to the verdicts and what was shown. */
async function answering(waiting: WaitingArticle[], answers: string[], signal = new AbortController().signal) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let shown = '';
  const left = [...answers];
  output.on('data', (text: Buffer) => {
    shown += text;
    if (!`${text}`.endsWith(': ')) return;
    const answer = left.shift();
    if (answer === undefined) input.end();
    else input.write(`${answer}\n`);
  });
  const verdicts = await askVerdicts(waiting, signal, { input, output });
  return { verdicts, shown: stripVTControlCharacters(shown) };
}

describe('a person at the terminal', () => {
  const waiting = ['a', 'b', 'c', 'd', 'e'].map(
    (title): WaitingArticle => ({ id: title, title, summary: `About ${title}`, tags: [], score: null }),
  );

  it('is asked about each article, again where the answer is none, and may edit, leave and stop', async () => {
    const { verdicts, shown } = await answering(waiting, ['x', '', 'A', 'e', '', 'edit', ' New ', 'r', 'l', 'd']);
    expect(verdicts).toEqual([
      { kind: 'approve' },
      { kind: 'edit', title: 'New' },
      { kind: 'reject' },
      { kind: 'leave' },
    ]);
    expect(shown.match(/\d of 5/g)).toEqual(['1 of 5', '2 of 5', '3 of 5', '4 of 5', '5 of 5']);
    expect(shown).toContain('  a  1 of 5\n    About a\n  [a]pprove');
  });

  it('keeps the verdicts so far when the input or the demo ends', async () => {
    expect((await answering(waiting, ['a', 'r'])).verdicts).toEqual([{ kind: 'approve' }, { kind: 'reject' }]);
    expect((await answering(waiting, ['a'], AbortSignal.abort())).verdicts).toEqual([]);
  });

  it('reads what came of each', () => {
    expect(outcomeOf({ kind: 'edit', title: 'New' }, waiting[0] as WaitingArticle)).toBe('310 → 320 → 330   a → New');
    expect(outcomeOf({ kind: 'reject' }, waiting[1] as WaitingArticle)).toBe('310 → 540         b');
  });
});

it('shows counts by code in the order of the pipeline', () => {
  const counts = [
    { code: 110, name: 'to_fetch', count: 12 },
    { code: 300, name: 'pending_review', count: 3 },
  ];
  expect(countsTable(counts, 1500).map(stripVTControlCharacters)).toEqual([
    '  code  name                count',
    '   110  to_fetch               12',
    '   300  pending_review          3',
    '  1.5 s',
  ]);
});
