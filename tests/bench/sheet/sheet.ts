// How long a sheet of many rows takes from its address to links, and once more when nothing has changed: the real function, the
// sweep's own pace, and the stand-in of Google Sheets.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { startStack } from '../../../local/platform/stack.ts';
import { startSheets } from '../../../local/services/sheets/server.ts';
import { type Result, round } from '../results.ts';

const rows = 100_000;
const patienceMs = 300_000;

/** Reads a sheet of 100,000 rows, then polls it again unchanged. Throws where that writes a row. */
export async function sheet(progress: (message: string) => void): Promise<Result[]> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-bench-sheet-'));
  const links = Array.from({ length: rows }, (_, n) => `${n},https://boards.example.com/company-${n % 900}/jobs/${n}`);
  fs.writeFileSync(path.join(folder, 'bench.csv'), ['No,Link', ...links].join('\n'));
  const sheets = await startSheets({ folder });
  const stack = await startStack({
    env: { GOOGLE_SERVICE_ACCOUNT: sheets.serviceAccount, SHEETS_API_URL: sheets.url },
    services: false,
    progress: (message) => progress(`sheet: ${message}`),
  });
  const client = new pg.Client({ connectionString: stack.dbUrl });
  try {
    await client.connect();
    // Links are queued as they come; what becomes of them is measured elsewhere.
    await client.query(`update millrace.pipelines set enabled = false where name = 'links'`);
    const first = await poll(client, () =>
      client.query(
        `insert into public.link_sources (kind, address, column_name)
         values ('sheet', 'https://docs.google.com/spreadsheets/d/bench/edit', 'Link')`,
      ),
    );
    progress(`sheet: ${rows} rows in ${round(first)} s; now once more, unchanged`);
    const before = await written(client);
    const second = await poll(client, () => client.query('update public.link_sources set next_poll_at = now()'));
    if (before !== (await written(client))) throw new Error('An unchanged sheet has written links.');
    const result = { engine: 'millrace', unit: 's' };
    return [
      { ...result, work: 'sheet of 100,000 rows', variant: 'first read', value: round(first) },
      { ...result, work: 'sheet of 100,000 rows', variant: 'unchanged', value: round(second) },
    ];
  } catch (error) {
    const said = stack.functions.logs('link-sources-poll').slice(-5);
    throw new Error(`${error instanceof Error ? error.message : error}\nThe function wrote:\n${said.join('\n')}`);
  } finally {
    await client.end();
    await stack.stop();
    await sheets.stop();
    fs.rmSync(folder, { recursive: true });
  }
}

/** Begins a pass over the sheet and waits for its end; resolves to its seconds. */
async function poll(client: pg.Client, begin: () => Promise<unknown>): Promise<number> {
  const began = Date.now();
  await begin();
  await client.query('select millrace.sweep()');
  for (;;) {
    const { rows: found } = await client.query<{ over: boolean }>(
      `select found = $1 and jsonb_typeof(cursor -> 'pass') = 'null' and next_poll_at > now() as over from public.link_sources`,
      [rows],
    );
    if (found[0]?.over) return (Date.now() - began) / 1000;
    if (Date.now() - began > patienceMs) throw new Error(`Not read within ${patienceMs / 1000} s.`);
    await delay(50);
  }
}

/** The numbers that would be others, had a link been inserted or changed. */
async function written(client: pg.Client): Promise<string> {
  const { rows: found } = await client.query<{ mark: string }>(
    `select count(*) || ' ' || max(xmin::text::bigint) as mark from public.linkedin_links`,
  );
  return found[0]?.mark ?? '';
}
