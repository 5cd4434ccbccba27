import fs from 'node:fs';
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  askVerdicts,
  outcomes,
  statedVerdicts,
  type WaitingArticle,
} from '../../local/demo/articles/review-articles.ts';
import { countsTable } from '../../local/demo/articles/watch-articles.ts';
import { readArguments } from '../../local/demo/read-arguments.ts';
import { listen, type Service } from '../../local/services/http/listen.ts';
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
    // A screen and a half, without the lines that a slow machine has more of.
    expect(stdout.split('\n').filter((line) => !/^ +\d+\.\d s /.test(line)).length).toBeLessThanOrEqual(95);
    // Each manual entry begins by what it brings.
    const running = stdout.replace(/\s+/g, ' ');
    for (const begins of [
      'an address alone: 110 to fetch',
      'its content too: 200 pending enrichment',
      'a summary: 220 to tag',
      'all of it: 300 pending review',
      'an import with its content: 120 to score',
      'an address that is known: 520 duplicate',
    ]) {
      expect(running).toContain(begins);
    }
    // Sources of every kind by their addresses, and why the broken ones fail.
    for (const source of [
      '/feed.xml +RSS feed',
      '/atom.xml +Atom feed',
      '/rdf.xml +RDF feed',
      '/sitemap.xml +sitemaps',
    ]) {
      expect(stdout).toMatch(new RegExp(`^ {2}http://127\\.0\\.0\\.1:\\d+${source} +\\d+\n`, 'm'));
    }
    expect(running).toMatch(/✗ \S+\/broken\/page \(broken on purpose\) The address gives a web page/);
    expect(running).toMatch(/✗ \S+\/broken\/busy\.xml \(broken on purpose\) \S+ answered 429/);
    // Every end before a review, alike ones together.
    expect(stdout).toMatch(/1 failed \(500\)\n +1 {2}no readable text was found: \S+\/2026\/gallery\n/);
    expect(stdout).toMatch(/2 unreachable \(510\)\n +1 {2}the site answered with status 404: \S+\/2026\/gone\n/);
    expect(stdout).toMatch(/6 duplicate \(520\)\n +6 {2}another article has its address or its text: \S+ and 5 more\n/);
    expect(stdout).toMatch(
      /3 irrelevant \(530\)\n +3 {2}about none of the topics: \S+\/2026\/central-rates and 2 more\n/,
    );
    // Decisions, publications, an edit, and its history with durations and fields.
    expect(stdout).toContain('Nobody is at a terminal, so the demo decides');
    for (const codes of ['310 → 330', '310 → 320 → 330', '310 → 540']) expect(stdout).toContain(codes);
    expect(stdout).toMatch(/^ +› .*\n {4}and 18 more: select /m);
    expect(stdout).toContain('select track_publication_edit(');
    expect(stdout).toMatch(/^ +100 discovered +agent:poll/m);
    expect(stdout).toMatch(/400 published +320 editing +user:demo +\d+ ms/);
    expect(stdout).toMatch(/320 editing +410 updated +user:demo +\d+ ms +title: ".*, revised"/);
    expect(stdout).toMatch(/Invariants .*no violation/);
  }, 240_000);

  it.runIf(process.env.SOAK)(
    'fetches twenty articles of a large site that the user names, and goes on with none of the others',
    async () => {
      const site = await largeSite(60);
      try {
        const { code, stdout, stderr } = await runArticles('--url', `${site.url}/sitemap.xml`);
        expect(code, `${stdout}${stderr}`).toBe(0);
        expect(stdout).toContain('Each source is polled once, then switched off; at most 20 of its articles are taken');
        expect(stdout).toMatch(/\/sitemap\.xml +sitemap +20\n/);
        expect(stdout).toContain('19 published, 1 rejected');
        expect(stdout).not.toMatch(/irrelevant/);
        expect(site.asked.filter((path) => path.startsWith('/articles/'))).toHaveLength(20);
        expect(site.asked.filter((path) => path === '/sitemap.xml')).toHaveLength(1);
      } finally {
        await site.stop();
      }
    },
    240_000,
  );
});

/** A site of so many articles, and the paths that it was asked for. */
async function largeSite(articles: number): Promise<Service & { asked: string[] }> {
  const asked: string[] = [];
  const places = Array.from({ length: articles }, (_, at) => at);
  const site = await listen((request: Request) => {
    const { pathname, origin } = new URL(request.url);
    asked.push(pathname);
    const type = { 'content-type': pathname.endsWith('.xml') ? 'application/xml' : 'text/html' };
    if (pathname === '/sitemap.xml') {
      const urls = places.map((at) => `<url><loc>${origin}/articles/${at}</loc></url>`).join('');
      const body = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${urls}</urlset>`;
      return new Response(body, { headers: type });
    }
    const [, at] = pathname.match(/^\/articles\/(\d+)$/) ?? [];
    if (at === undefined) return new Response('', { status: 404 });
    const text = `Report number ${at} is about bridge ${at}, its ${at} arches and the ferry beside it. `.repeat(12);
    return new Response(`<title>Bridge ${at}</title><article><h1>Bridge ${at}</h1><p>${text}</p></article>`, {
      headers: type,
    });
  });
  return { ...site, asked };
}

it('the demo names the arguments of the articles, and the fault of others', () => {
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

  it('reads what came of them, alike ones together', () => {
    expect(outcomes([{ kind: 'edit', title: 'New' }, { kind: 'approve' }, { kind: 'approve' }], waiting)).toEqual([
      'edited    310 → 320 → 330  a',
      'approved  310 → 330        b and 1 more',
    ]);
  });
});

it('the table shows counts by code in the order of the pipeline', () => {
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
