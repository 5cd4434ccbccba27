// The pipeline link_sources on a stack: the real function reads sheets and data sources of the stand-ins.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Row } from '../support/engine.ts';
import { serveSources } from '../support/examples/source-files.ts';
import { ProjectStack } from '../support/stack/project-stack.ts';

const patienceMs = 60_000;
const sheet = 'the-first-sheet-of-these-tests';
const other = 'the-second-sheet-of-these-tests';
const dataSource = 'ab'.repeat(16);
const sheetAddress = (id: string) => `https://docs.google.com/spreadsheets/d/${id}/edit#gid=0`;

/** A row of link_sources. */
interface Source extends Row {
  id: string;
  found: number;
  last_error: string | null;
  next_poll_at: Date;
}

class SourcesStack extends ProjectStack {
  static async start(env: Record<string, string>): Promise<SourcesStack> {
    return new SourcesStack(await ProjectStack.launch({ services: false, env }));
  }

  /** A source that the sweep does not poll meanwhile. */
  async add(kind: string, address: string, column: string | null = null): Promise<string> {
    return this.value(
      `insert into public.link_sources (kind, address, column_name, next_poll_at)
       values ($1, $2, $3, now() + interval '1 day') returning id`,
      [kind, address, column],
    );
  }

  /** Polls sources and waits until that is over; resolves to their rows. */
  async poll(...ids: string[]): Promise<Source[]> {
    for (const id of ids) await this.value(`select millrace.start('link_sources', $1)`, [id]);
    const over = `select not exists (
      select from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
      where p.name = 'link_sources' and r.status = 'running')`;
    const said = async () => this.lastWords('link-sources-poll');
    // Nobody waits for a retry to fall due.
    const hurry = `select millrace.hurry(a.run_id) from millrace.attempts a
      where a.state = 'queued' and a.queue_at > millrace.now()`;
    const isOver = async () => {
      await this.rows(hurry);
      return this.value(over);
    };
    await this.until('the polls are over', isOver, patienceMs, said);
    const rows = await this.rows<Source>('select * from public.link_sources where id = any ($1)', [ids]);
    return ids.map((id) => rows.find((row) => row.id === id) as Source);
  }

  async links(): Promise<string[]> {
    const rows = await this.rows<{ canonical_url: string }>(
      'select canonical_url from public.linkedin_links order by id',
    );
    return rows.map((row) => row.canonical_url);
  }
}

let stack: SourcesStack;
let sources: Awaited<ReturnType<typeof serveSources>>;
beforeAll(async () => {
  sources = await serveSources();
  stack = await SourcesStack.start({
    GOOGLE_SERVICE_ACCOUNT: sources.sheets.serviceAccount,
    SHEETS_API_URL: sources.sheets.url,
    NOTION_TOKEN: 'secret',
    NOTION_API_URL: sources.notion.url,
  });
  // The fate of the links is another pipeline's.
  await stack.rows(`update millrace.pipelines set enabled = false where name = 'links'`);
});
afterAll(async () => {
  await stack?.stop();
  await sources?.stop();
});

const spellings = [
  'https://www.linkedin.com/jobs/view/3912345678/',
  'http://linkedin.com/jobs/view/3912345678?refId=abc&trackingId=x',
  'https://de.linkedin.com/jobs/view/senior-weaver-at-acme-3912345678#top',
  'www.linkedin.com/jobs/view/3912345678',
  'https://www.linkedin.com/jobs/search/?currentJobId=3912345678&keywords=weaver',
  'https://www.linkedin.com/jobs/view/3912345678/?utm_source=mail',
];

test('Ingest duplicates of the same URL from Sheets → only one linkedin_links row exists; others are ignored.', async () => {
  const [first, second, third, ...rest] = spellings;
  sources.write(`${sheet}.csv`, ['Link', first, second, first, 'https://example.com/job'].join('\n'));
  sources.write(`${other}.csv`, ['Link', third, ...rest].join('\n'));
  sources.write(`${dataSource}.json`, {
    pages: spellings.map((Link, n) => ({
      id: `${n}`.repeat(32),
      created_time: '2026-11-01T08:00:00.000Z',
      properties: { Link },
    })),
  });
  const ids = await Promise.all([
    stack.add('sheet', sheetAddress(sheet), 'Link'),
    stack.add('sheet', sheetAddress(other), 'Link'),
    stack.add('notion', `https://www.notion.so/${dataSource}`, 'Link'),
  ]);
  const polled = await stack.poll(...ids);
  expect(polled.map(({ last_error }) => last_error)).toEqual([null, null, null]);
  expect((await stack.links()).toSorted()).toEqual([
    'https://example.com/job',
    'https://www.linkedin.com/jobs/view/3912345678',
  ]);
  expect(polled.reduce((sum, { found }) => sum + found, 0)).toBe(2);

  // A known link stays as it is, whatever a later poll reads of it.
  await stack.rows(`update public.linkedin_links set classification = 'job'`);
  sources.write(`${sheet}.csv`, ['Link', ...spellings].join('\n'));
  const before = await stack.rows('select * from public.linkedin_links order by id');
  await stack.poll(...ids);
  expect(await stack.rows('select * from public.linkedin_links order by id')).toEqual(before);
});

test('a sheet of many ranges is read by polls of a bounded length, each going on where the last left off', async () => {
  const many = `a-sheet-of-these-tests-${randomUUID()}`;
  // All its links are read; only those at its beginning and at its end are new, each of which Postgres writes with all that follows.
  const links = Array.from({ length: 41_000 }, (_, n) => (n < 40_000 ? n % 5_000 : n));
  const different = 6000;
  sources.write(`${many}.csv`, links.map((n) => `https://example.com/${many}/${n}`).join('\n'));
  const id = await stack.add('sheet', sheetAddress(many));
  const passes: number[] = [];
  for (let found = 0; found < different; ) {
    const [row] = await stack.poll(id);
    expect(row?.last_error).toBeNull();
    passes.push((row?.found ?? 0) - found);
    found = row?.found ?? 0;
    const isDue = await stack.value('select next_poll_at <= now() from public.link_sources where id = $1', [id]);
    expect(isDue).toBe(found < different);
  }
  expect(passes.length).toBeGreaterThan(1);
  sources.asked.length = 0;
  const [unchanged] = await stack.poll(id);
  expect(unchanged?.found).toBe(different);
  // The tab, and seventeen ranges. A worker that ends meanwhile hands the pass to the next one, which begins it anew; that a
  // range is read once otherwise is proved where sheets are read.
  expect(sources.asked.filter((path) => path.includes(many)).length).toBeGreaterThanOrEqual(18);
});

test.each([
  ['a sheet without the column', 'sheet', 'Address', 'The first row has no "Address", it has Link: correct the name.'],
  ['a sheet that is gone', 'sheet', null, 'There is no such sheet: correct the address.'],
])('%s says so on its row, and is due again by its interval', async (what, kind, column, said) => {
  const id = `one-for-the-test-${what.length}-of-these-tests`;
  if (column) sources.write(`${id}.csv`, 'Link\nhttps://example.com/1');
  const [row] = await stack.poll(await stack.add(kind, sheetAddress(id), column));
  expect(row?.last_error).toBe(said);
  expect(row?.next_poll_at.getTime()).toBeGreaterThan(Date.now() + 3 * 3_600_000);
});

test('a change of a sheet between two polls shows on its row, and deletes no link', async () => {
  const id = 'a-sheet-of-these-tests-that-changes';
  const row = async () => (await stack.poll(source))[0];
  const known = async () =>
    stack.value<number>(`select count(*)::int from public.linkedin_links where canonical_url like '%/changes/%'`);
  // Two links in one cell are two links.
  sources.write(
    `${id}.csv`,
    'Link\n"https://example.com/changes/1 and https://example.com/changes/2"\nhttps://example.com/changes/3',
  );
  const source = await stack.add('sheet', sheetAddress(id), 'Link');
  expect(await row()).toMatchObject({ found: 3, last_error: null });
  sources.write(`${id}.csv`, 'Link\n');
  expect(await row()).toMatchObject({ found: 3, last_error: null });
  sources.write(`${id}.csv`, '');
  expect((await row())?.last_error).toMatch(/first row has no "Link".*correct the name/);
  sources.remove(`${id}.csv`);
  sources.write(`${id}.json`, { shared: false, tabs: [] });
  expect((await row())?.last_error).toMatch(/is not shared with reader@\S+: share it/);
  expect(await known()).toBe(3);
  const rows = [['Link'], ['https://example.com/changes/4']];
  sources.write(`${id}.json`, { tabs: [{ title: 'Renamed', rows }] });
  expect(await row()).toMatchObject({ found: 4, last_error: null });
  // A token that is revoked is asked for anew.
  sources.write(`${id}.json`, { tabs: [{ title: 'Renamed', rows: [...rows, ['https://example.com/changes/5']] }] });
  sources.failNext({ status: 401 });
  await stack.poll(source);
  await stack.until('the next try has read it', async () => (await known()) === 5, patienceMs);
});

test('a data source that is moved away says so on its row, and its links stay', async () => {
  const id = 'cd'.repeat(16);
  const pages = [
    {
      id: '1'.repeat(32),
      created_time: '2026-11-01T08:00:00.000Z',
      properties: { Link: 'https://example.com/moved/1' },
    },
  ];
  sources.write(`${id}.json`, { pages });
  const source = await stack.add('notion', `https://www.notion.so/${id}`, 'Link');
  expect((await stack.poll(source))[0]).toMatchObject({ found: 1, last_error: null });
  sources.write(`${id}.json`, { shared: false, pages });
  const [row] = await stack.poll(source);
  expect(row).toMatchObject({ found: 1, last_error: expect.stringMatching(/moved, or is not shared.*Connections/) });
  expect(row?.next_poll_at.getTime()).toBeGreaterThan(Date.now() + 3 * 3_600_000);
});

test('a link that is too long is named, and the others are taken', async () => {
  const id = 'a-sheet-of-these-tests-with-a-long-link';
  sources.write(`${id}.csv`, `https://example.com/short\nhttps://example.com/${'x'.repeat(3000)}`);
  const [row] = await stack.poll(await stack.add('sheet', sheetAddress(id)));
  expect(row).toMatchObject({ found: 1, last_error: expect.stringContaining('The link at Sheet1!A2 is longer') });
});

test('a poll that another has overtaken saves nothing', async () => {
  const id = await stack.add('sheet', sheetAddress('never-read'));
  const links = JSON.stringify([{ url: 'https://example.com/late', place: 'A1' }]);
  const save = (before: string | null, cursor: string) =>
    stack.value('select public.save_links($1, $2, $3, $4)', [id, links, before, cursor]);
  expect(await save(null, '{"row": 2}')).toMatchObject({ saved: true, found: 1 });
  expect(await save(null, '{"row": 1}')).toMatchObject({ saved: false, found: 0 });
  expect(await save('{"row": 2}', '{"row": 3}')).toMatchObject({ saved: true, found: 0 });
});
