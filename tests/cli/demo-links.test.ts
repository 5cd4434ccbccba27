import fs from 'node:fs';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sampleLinks } from '../../local/demo/links/sample-links.ts';
import { queuesTable } from '../../local/demo/links/watch-links.ts';
import { readArguments } from '../../local/demo/read-arguments.ts';
import { startBoards } from '../../local/demo/samples/links/server.ts';
import { demoHere, temporaryFolder } from './demo-here.ts';

let temporary: string;

beforeEach(() => {
  temporary = temporaryFolder();
});
afterEach(() => {
  fs.rmSync(temporary, { recursive: true, force: true });
});

/** Does what `npm run demo -- links` does with these arguments, with no settings but the defaults. */
function runLinks(...args: string[]) {
  const none = ['LLM_URL', 'LLM_MODEL', 'SCRAPER_URL', 'SCRAPER_ALLOW_HOSTS', 'GOOGLE_SERVICE_ACCOUNT', 'NOTION_TOKEN'];
  const env = { TMPDIR: temporary, ...Object.fromEntries(none.map((name) => [name, ''])) };
  return demoHere(['links', ...args], env);
}

describe.runIf(process.platform === 'linux')('npm run demo -- links', () => {
  it.runIf(process.env.SOAK)(
    'takes sixty links of a sheet and a data source to jobs, with an alert and a second try',
    async () => {
      const { code, stdout, stderr } = await runLinks();
      expect(code, `${stdout}${stderr}`).toBe(0);
      // A screen and a half, without the lines that a slow machine has more of.
      expect(stdout.split('\n').filter((line) => !/^ +\d+\.\d s |^ {11}\S/.test(line)).length).toBeLessThanOrEqual(95);
      // A terminal of usual width shows each line whole.
      expect(stdout.split('\n').filter((line) => line.length > 100)).toEqual([]);
      // The sources, and the words of their links as they go on.
      expect(stdout).toMatch(/sheet +https:\S+\/open-jobs\/edit +\d+\n/);
      expect(stdout).toMatch(/notion +collection:\/\/\S+ +\d+\n/);
      expect(stdout).toMatch(/error 1 {2}extracted 34 {2}dead 11\n/);
      // No board asks for patience before all other pages are fetched.
      expect(stdout.slice(0, stdout.indexOf('7. What waits'))).not.toMatch(/error [2-9]/);
      // Pauses and ends are drawn with others of their kind.
      expect(stdout).toMatch(/ 4 error\n +3 {2}the site answered with status 429: \S+\/jobs\/busy-\d and 2 more\n/);
      expect(stdout).toMatch(/1 {2}the site asks for a captcha, which this scraper does not solve: /);
      // The pauses by the boards' answers are known by then and go on, so no link waits for them to pass.
      expect(stdout).toContain("select millrace.unthrottle_limit('scrapes');");
      for (const [links, says] of [
        [1, 'status 410'],
        [2, 'status 404'],
        [1, 'application/pdf'],
        [1, 'it is gone'],
        [1, 'front page'],
        [1, 'ended on 2026-01-31'],
        [1, 'log in'],
        [1, 'robots.txt asks'],
        [1, 'not on the public internet'],
        [1, 'no web address'],
      ]) {
        expect(stdout).toMatch(new RegExp(` 11 dead\\n(?: .*\\n)* +${links}  .*${says}.*: \\S`));
      }
      // An alert, raised and resolved.
      expect(stdout).toMatch(/raised {2}\d+ runs are ready at route_job of links, above 10 /);
      expect(stdout).toMatch(/resolved {2}\d+ runs .* {2}\(raised [\d:]+, resolved [\d:]+\)\n/);
      expect(stdout).toMatch(/^ {2}Contour Press +Atlas binder +Ostbridge/m);
      expect(stdout).toContain('32 jobs of 11 companies');
      expect(stdout).toMatch(/Invariants .*no violation/);
    },
    240_000,
  );

  it('takes links of the user’s own, from a file and from the command line', async () => {
    const boards = await startBoards();
    const file = path.join(temporary, 'mine.csv');
    fs.writeFileSync(file, `who,what\nme,see ${boards.jobs[0]} and more\nyou,nothing\n`);
    try {
      const { code, stdout, stderr } = await runLinks('--sheet', file, boards.jobs[1] as string);
      expect(code, `${stdout}${stderr}`).toBe(0);
      expect(stdout).toMatch(/sheet +https:\S+\/your-sheet\/edit +1\n/);
      expect(stdout).toMatch(/extracted \d/);
      expect(stdout).toContain('2. Your links');
      expect(stdout.split('\n').filter((line) => line.length > 100)).toEqual([]);
    } finally {
      await boards.stop();
    }
  }, 240_000);
});

it('the demo names the arguments of the links, and the fault of others', async () => {
  expect(readArguments(['links'])).toMatchObject({ demo: 'links', keep: false, urls: [], sheet: null });
  const { urls, sheet } = readArguments([
    'links',
    '--sheet',
    'mine.csv',
    'https://a.test/1',
    '--url',
    'https://b.test/',
  ]);
  expect(urls.map(String)).toEqual(['https://b.test/', 'https://a.test/1']);
  expect(sheet).toBe('mine.csv');
  const fault = '"mine.csv" is no web address: write it in full, such as https://example.com, or --sheet before a file';
  expect(() => readArguments(['links', 'mine.csv'])).toThrow(fault);
  expect(() => readArguments(['leads', '--sheet', 'mine.csv'])).toThrow('--sheet belongs to the links');
  const { code, stderr } = await runLinks('--sheet', path.join(temporary, 'none.csv'));
  expect(code).toBe(1);
  expect(stderr).toMatch(/none\.csv cannot be read: there is no such file\. Name a CSV file behind --sheet\./);
});

it('the demo has sixty links, of which fourteen are there in another spelling', async () => {
  const boards = await startBoards();
  const { sheet, pages, busy } = sampleLinks(boards);
  await boards.stop();
  expect(sheet.length + pages.length + busy.length).toBe(60);
  expect([...sheet, ...pages].filter(({ note }) => note === 'another spelling')).toHaveLength(14);
  // Few of one host, which are fetched one after the other; and none before the others that slows all of them.
  const hosts = new Map<string, number>();
  for (const { link, note } of [...sheet, ...pages]) {
    expect(busy).not.toContain(link);
    const host = /^https?:\/\/([^/]+)/i.exec(link)?.[1];
    if (host && note !== 'another spelling') hosts.set(host, (hosts.get(host) ?? 0) + 1);
  }
  expect(Math.max(...hosts.values())).toBeLessThanOrEqual(6);
});

it('the table shows the links in each queue, and the words', () => {
  const queues = [
    { queue: 'ingest', ready: 2, in_backoff: 0, in_work: 1 },
    { queue: 'scrape.job', ready: 0, in_backoff: 3, in_work: 0 },
  ];
  expect(queuesTable(queues, [{ word: 'error', count: 3 }], 1500).map(stripVTControlCharacters)).toEqual([
    '  queue              ready  in backoff     in work',
    '  ingest                 2           0           1',
    '  scrape.job             0           3           0',
    '  error 3',
    '  1.5 s',
  ]);
});
