import { afterAll, beforeAll, expect, test } from 'vitest';
import { sheetIds } from '../../supabase/functions/_services/sheets/find-tab.ts';
import { readSheet, type SheetCursor } from '../../supabase/functions/_services/sheets/read-sheet.ts';
import { sheetsSettings } from '../../supabase/functions/_services/sheets/sheets-settings.ts';
import type { SourceLink } from '../../supabase/functions/_services/text-links.ts';
import { serveSources } from '../support/examples/source-files.ts';
import { startServer } from '../support/http-server.ts';

let sources: Awaited<ReturnType<typeof serveSources>>;
beforeAll(async () => {
  sources = await serveSources();
});
afterAll(() => sources?.stop());

/** How long a stand-in takes is the machine's: what bounds a read has tests of its own. */
const unbounded = new AbortController().signal;
const id = 'the-sheet-of-these-tests';
const address = `https://docs.google.com/spreadsheets/d/${id}/edit?usp=sharing`;

function access(settings: object = {}) {
  const env = {
    GOOGLE_SERVICE_ACCOUNT: sources.sheets.serviceAccount,
    SHEETS_API_URL: sources.sheets.url,
    ...settings,
  };
  return { settings: sheetsSettings.parse(env), signal: unbounded, timeoutMs: 3_600_000 };
}

/** Reads a whole pass. */
async function readAll(column: string | null, begun: SheetCursor | null = null, from = address) {
  const links: SourceLink[] = [];
  let cursor = begun;
  for (let more = true; more; ) {
    const read = await readSheet({ address: from, column, cursor }, access());
    links.push(...read.links);
    ({ cursor, more } = read);
  }
  return { links, cursor: cursor as SheetCursor };
}

const urls = (links: SourceLink[]) => links.map(({ url }) => url);

test('links are found wherever a cell may have them', async () => {
  sources.write(`${id}.json`, {
    tabs: [
      {
        title: "Jobs '26",
        rows: [
          ['Look at https://example.com/text, please', 'nothing here'],
          [{ formattedValue: 'Engineer', hyperlink: 'https://example.com/cell' }],
          [
            {
              formattedValue: 'this or that',
              textFormatRuns: [
                { format: { link: { uri: 'https://example.com/this' } } },
                { startIndex: 4 },
                { startIndex: 8, format: { link: { uri: 'https://example.com/that' } } },
              ],
            },
          ],
          [
            {
              formattedValue: 'chip',
              chipRuns: [{ chip: { richLinkProperties: { uri: 'https://example.com/chip' } } }],
            },
          ],
          [
            {
              formattedValue: 'Open',
              userEnteredValue: { formulaValue: '=IF(TRUE;HYPERLINK("https://example.com/formula";"Open");"")' },
            },
          ],
          ['https://example.com/a https://example.com/b(1)', 'mailto:somebody@example.com'],
        ],
      },
    ],
  });
  const { links } = await readAll(null);
  expect(urls(links).map((url) => url.replace('https://example.com/', ''))).toEqual([
    ...['text', 'cell', 'this', 'that', 'chip', 'formula', 'a', 'b(1)'],
  ]);
  expect(links[1]?.place).toBe("Jobs '26!A2");
});

test('of a named column every cell counts, and one without a link as it is', async () => {
  sources.write(`${id}.json`, {
    tabs: [
      {
        title: 'T',
        rows: [
          ['Name', ' link '],
          ['https://example.com/no', 'example.com/1'],
          ['x', ''],
          ['y', 'https://example.com/2'],
        ],
      },
    ],
  });
  expect((await readAll('Link')).links).toEqual([
    { url: 'example.com/1', place: 'T!B2' },
    { url: 'https://example.com/2', place: 'T!B4' },
  ]);
});

test('cells that show an error are counted, also where nothing has changed', async () => {
  sources.write(`${id}.json`, {
    tabs: [{ title: 'T', rows: [['Link'], ['https://example.com/1'], ['#REF!'], ['Loading...']] }],
  });
  const broken = { count: 2, text: '#REF!', place: 'T!A3' };
  const first = await readSheet({ address, column: 'Link', cursor: null }, access());
  expect(first).toMatchObject({ links: [{ url: 'https://example.com/1' }], broken });
  expect(await readSheet({ address, column: 'Link', cursor: first.cursor }, access())).toMatchObject({
    links: [],
    broken,
  });
});

/** Reads a sheet of a Google that answers so. */
async function answered(status: number, body: object) {
  const google = await startServer(() => ({ status, bytes: Buffer.from(JSON.stringify(body)) }));
  return readSheet({ address, column: null, cursor: null }, access({ SHEETS_API_URL: google.url }));
}

test.each([
  ['rateLimitExceeded', { code: 'rate_limited', permanent: false, retryAfterMs: 60_000 }],
  ['userRateLimitExceeded', { code: 'rate_limited', permanent: false }],
  ['RATE_LIMIT_EXCEEDED', { code: 'rate_limited', permanent: false }],
  ['forbidden', { code: 'not_shared', permanent: true }],
])('a 403 for %s', async (reason, refusal) => {
  await expect(answered(403, { error: { code: 403, errors: [{ reason }] } })).rejects.toMatchObject(refusal);
});

test('an Excel file in Drive says to save it as a Google sheet', async () => {
  const message = 'This operation is not supported for this document';
  await expect(answered(400, { error: { code: 400, message, status: 'FAILED_PRECONDITION' } })).rejects.toMatchObject({
    code: 'no_google_sheet',
    message: expect.stringContaining('Save as Google Sheets'),
  });
});

test('a chart as the first tab is passed over', async () => {
  const chart = { properties: { sheetId: 1, title: 'Chart', sheetType: 'OBJECT' } };
  const cells = { properties: { sheetId: 2, title: 'Jobs', gridProperties: { rowCount: 1, columnCount: 1 } } };
  const range = { sheets: [{ data: [{ rowData: [{ values: [{ formattedValue: 'https://example.com/1' }] }] }] }] };
  const google = await startServer(({ path }) => {
    const body = path.includes('ranges=') ? range : { sheets: [chart, cells] };
    return { bytes: Buffer.from(JSON.stringify(body)) };
  });
  const read = await readSheet({ address, column: null, cursor: null }, access({ SHEETS_API_URL: google.url }));
  expect(read.links).toEqual([{ url: 'https://example.com/1', place: 'Jobs!A1' }]);
});

test.each([
  'https://docs.google.com/spreadsheets/u/1/d/the-sheet/edit#gid=7',
  'https://docs.google.com/spreadsheets/d/the-sheet/htmlview?gid=7',
  'https://drive.google.com/file/d/the-sheet/view?gid=7',
  'https://drive.google.com/open?id=the-sheet&gid=7',
])('the id of a sheet is found in %s', (given) => {
  expect(sheetIds(given)).toEqual({ spreadsheet: 'the-sheet', tab: 7 });
});

test('an address of a published copy says what to share', () => {
  const given = 'https://docs.google.com/spreadsheets/d/e/2PACX-1vQabcdefghijklmnopqrstuvwxyz/pubhtml';
  expect(() => sheetIds(given)).toThrow(/published to the web.*share it with the service account/s);
});

test('an address with gid names its tab', async () => {
  const tab = (title: string, sheetId: number) => ({ title, sheetId, rows: [[`https://example.com/${title}`]] });
  sources.write(`${id}.json`, { tabs: [tab('first', 0), tab('second', 77)] });
  expect(urls((await readAll(null, null, `${address}#gid=77`)).links)).toEqual(['https://example.com/second']);
  expect(urls((await readAll(null)).links)).toEqual(['https://example.com/first']);
  await expect(readAll(null, null, `${address}#gid=5`)).rejects.toMatchObject({ code: 'no_tab', permanent: true });
});

test('an unchanged range costs one read and gives nothing, and a changed one is read anew', async () => {
  const rows = Array.from({ length: 6000 }, (_, n) => `https://example.com/${n}`);
  sources.write(`${id}.csv`, rows.join('\n'));
  sources.remove(`${id}.json`);
  const first = await readAll(null);
  expect(first.links).toHaveLength(6000);
  sources.asked.length = 0;
  const second = await readAll(null, first.cursor);
  expect(second.links).toEqual([]);
  // The tab, and three ranges.
  expect(sources.asked.filter((path) => path !== '/token')).toHaveLength(4);
  rows[3000] = 'https://example.com/new';
  sources.write(`${id}.csv`, rows.join('\n'));
  const third = await readAll(null, second.cursor);
  expect(third.links).toHaveLength(2500);
  expect(urls(third.links)).toContain('https://example.com/new');
});

test('an emptied sheet gives nothing, and what is written later is read', async () => {
  sources.write(`${id}.csv`, 'https://example.com/1');
  const before = await readAll(null);
  sources.write(`${id}.csv`, '');
  const emptied = await readAll(null, before.cursor);
  expect(emptied.links).toEqual([]);
  sources.write(`${id}.csv`, 'https://example.com/1');
  expect(urls((await readAll(null, emptied.cursor)).links)).toEqual(['https://example.com/1']);
});

test('a tab that is renamed between two ranges is found again by the next try', async () => {
  const rows = Array.from({ length: 3000 }, (_, n) => [`https://example.com/${n}`]);
  sources.remove(`${id}.csv`);
  sources.write(`${id}.json`, { tabs: [{ title: 'Old', rows }] });
  const { cursor, more } = await readSheet({ address, column: null, cursor: null }, access());
  expect(more).toBe(true);
  sources.write(`${id}.json`, { tabs: [{ title: 'New', rows }] });
  const read = await readSheet({ address, column: null, cursor }, access());
  expect(read).toMatchObject({ links: [], more: true });
  expect(await readAll(null, read.cursor)).toMatchObject({ links: { length: 3000 } });
});

test.each([
  ['one that is no address', { from: 'https://example.com/sheet' }, { code: 'invalid_address', permanent: true }],
  [
    'one that is gone',
    { from: `${address.replace(id, 'another-sheet-that-is-gone')}` },
    { code: 'not_found', permanent: true },
  ],
  [
    'one without the column',
    { column: 'URL' },
    { code: 'no_column', message: 'The first row has no "URL", it has Name: correct the name.' },
  ],
])(
  '%s is refused with what to do',
  async (_, { from = address, column = null }: { from?: string; column?: string | null }, refusal) => {
    sources.write(`${id}.json`, { tabs: [{ title: 'T', rows: [['Name']] }] });
    await expect(readAll(column, null, from)).rejects.toMatchObject(refusal);
  },
);

test('the error of a sheet that is not shared names the account to share it with', async () => {
  sources.write(`${id}.json`, { shared: false, tabs: [] });
  await expect(readAll(null)).rejects.toMatchObject({
    code: 'not_shared',
    message: expect.stringContaining('reader@millrace-local.iam.gserviceaccount.com: share it'),
  });
});

test('Google’s own troubles are tried again, after the time it asks for', async () => {
  sources.failNext({ status: 429, headers: { 'retry-after': '7' } });
  await expect(readAll(null)).rejects.toMatchObject({ code: 'rate_limited', permanent: false, retryAfterMs: 7000 });
  sources.failNext({ status: 429 });
  await expect(readAll(null)).rejects.toMatchObject({ code: 'rate_limited', retryAfterMs: 60_000 });
  sources.failNext({ status: 503 });
  await expect(readAll(null)).rejects.toMatchObject({ code: 'server_error', permanent: false });
});

test('a key that Google refuses, and one that is none, is a setting to mend', async () => {
  const other = await serveSources();
  const stranger = { ...JSON.parse(other.sheets.serviceAccount), token_uri: `${sources.sheets.url}/token` };
  await other.stop();
  const read = (account: object) =>
    readSheet({ address, column: null, cursor: null }, access({ GOOGLE_SERVICE_ACCOUNT: JSON.stringify(account) }));
  await expect(read(stranger)).rejects.toMatchObject({ code: 'misconfigured' });
  const broken = { ...stranger, private_key: '-----BEGIN PRIVATE KEY-----\nnothing\n-----END PRIVATE KEY-----' };
  await expect(read(broken)).rejects.toMatchObject({ code: 'misconfigured' });
  expect(() => access({ GOOGLE_SERVICE_ACCOUNT: '{"type":"authorized_user"}' })).toThrow(/key file/);
});
