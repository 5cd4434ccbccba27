// docs/playbooks leads from each alert to a query and a verb: every statement is run here, on rows in the state it is for.
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'vitest';
import { playbookOf } from '../../supabase/functions/_millrace/alerts/say-alert.ts';
import { minutes } from '../support/engine/alerts.ts';
import { chain, type Engine, test } from '../support/engine.ts';
import { type Claimed, completed, failed, Worker } from '../support/worker.ts';
import { docsFolder, readPage } from './page.ts';

const folder = path.join(docsFolder, 'playbooks');
const names = (await readdir(folder)).map((file) => path.basename(file, '.md'));

/** Runs of `links` in the states that playbooks are about, by name. */
async function links(engine: Engine): Promise<Record<string, string>> {
  await engine.configureWakeUps();
  await engine.sql.query('create table public.links (id bigint generated always as identity primary key, url text)');
  await engine.sql.query('create index on public.links (url text_pattern_ops)');
  await engine.sql.query(`
    select millrace.define_limit('scrapes', '{"rate": {"count": 60, "per_seconds": 60}}');
    select millrace.define_limit('model', '{"spending": {"usd": 5, "per_seconds": 86400}}')`);
  const retry = { max_attempts: 3, backoff: { kind: 'list', seconds: [3600] } };
  await engine.define({
    pipeline: 'links',
    entity: { table: 'public.links', key: 'id', projection: 'none', label: 'url' },
    sla: { median_seconds: 1200, p95_seconds: 7200 },
    stages: chain(['scrape_job', 'extract'], { retry, sla_seconds: 600 }),
  });
  const work = async (report: (item: Claimed) => object) => {
    const worker = await Worker.of(engine, 'scrape_job', 'links');
    const [item] = await worker.take(1);
    await worker.report({ ...(item as Claimed), ...report(item as Claimed) });
    await worker.leave();
  };
  const runs: Record<string, string> = {};
  const begin = async (name: string) => {
    runs[name] = await engine.value<string>(
      `with new as (insert into public.links (url) values ('https://example.com/jobs/' || $1) returning id)
       select millrace.start('links', id::text) from new`,
      [name],
    );
  };
  await begin('inBackoff');
  await work((item) => failed(item, { code: 'server_error', message: 'it is down' }));
  await begin('failed');
  await work((item) => failed(item, { code: 'not_found', message: 'it is gone', permanent: true }));
  await begin('down');
  await work((item) => failed(item, { code: 'server_error', message: 'it is down', permanent: true }));
  await begin('scraped');
  await work((item) => ({ ...completed(item), usage: { model: 'm', input_tokens: 1, output_tokens: 1, cost_usd: 1 } }));
  await begin('queued');
  await begin('alsoQueued');
  await minutes(engine, 1);
  return runs;
}

/** The rows that the pages call 42, 43 and 44. */
const meant: Record<string, [string, string?, string?]> = {
  reprocess: ['inBackoff', 'failed', 'scraped'],
  stuck: ['queued', 'alsoQueued'],
  'permanent-failures': ['queued', 'alsoQueued'],
  budget: ['scraped'],
};

test.for(names)('%s.md leads from what to look at to a verb, and every statement runs', async (name, { engine }) => {
  const runs = await links(engine);
  const page = await readPage(name, folder);
  expect(page.text.match(/^## .*/gm)?.length).toBeGreaterThan(2);
  expect(page.statements.length).toBeGreaterThan(3);
  const first = await engine.value<string>('select min(id)::text from public.links');
  const named = (meant[name] ?? []).map((run, at): [string, string] => [String(42 + at), runs[run ?? ''] ?? '']);
  const numbers = new Map([['17', first], ...named]);
  for (const statement of page.statements) {
    const given = statement.replaceAll(/(?<!\/)\b(?:17|4[234])\b/g, (number) => numbers.get(number) ?? number);
    await expect(engine.rows(given), given).resolves.toBeDefined();
  }
});

test('the verbs of the playbooks do what they say', async ({ engine }) => {
  const runs = await links(engine);
  const stateOf = (run: string | undefined) =>
    engine.value<string>(`select progress from millrace.stage_runs where run_id = $1 and stage = 'scrape_job'`, [run]);
  expect(await stateOf(runs.failed)).toBe('failed');
  await engine.sql.query('select millrace.retry($1)', [runs.failed]);
  expect(await stateOf(runs.failed)).toBe('in progress');
  await engine.sql.query(
    `select millrace.retry(run_id) from millrace.dead_letters
     where pipeline = 'links' and stage = 'scrape_job' and error_code = 'server_error' and can_retry`,
  );
  expect(await stateOf(runs.down)).toBe('in progress');
  await engine.sql.query('select millrace.hurry($1)', [runs.inBackoff]);
  expect(
    await engine.value(
      `select ready::int from millrace.stage_health where pipeline = 'links' and stage = 'scrape_job'`,
    ),
  ).toBe(5);
});

test('each kind of rule has its page, and the index names the folder', async () => {
  const kinds = ['run_sla', 'error_share', 'backlog', 'dead', 'spend', 'late', 'refused', 'engine'];
  const pages = kinds.map((kind) => playbookOf({ kind }));
  // Messages link into the package of the release.
  const { files } = JSON.parse(await readFile(path.join(docsFolder, '..', 'package.json'), 'utf8'));
  expect(files).toContain('docs/');
  expect(files).not.toContain('!docs/playbooks/');
  expect(pages.filter((page) => !names.includes(path.basename(page, '.md')))).toEqual([]);
  const readme = await readFile(path.join(docsFolder, 'README.md'), 'utf8');
  for (const link of ['(playbooks)', '(alerting.md)', '(metrics/README.md)']) expect(readme).toContain(link);
});
