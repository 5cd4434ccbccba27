// The leads of the examples with a slow model: from the first question to the last message.
import type pg from 'pg';
import { startSites } from '../../../local/demo/samples/sites/server.ts';
import type { Stack } from '../../../local/platform/stack.ts';
import { startServices } from '../../../local/services/start-services.ts';
import { onAStack } from '../on-a-stack.ts';
import type { Values } from '../results.ts';
import { watchStack } from '../stack-usage.ts';
import { nothingRuns, until } from '../until.ts';
import { type Calls, waitOf } from './call-service.ts';
import { columns, outcomeOf } from './columns.ts';
import { makespan } from './ideal.ts';
import { startSlowModel } from './slow-model.ts';

const asking = ['intel', 'strategy', 'subject', 'messaging'];
// At each of these stages, by its batch and its workers.
const places = 10 * 4;
const accounts = 4;

/** Measures so many leads, from when all their sites have been read. */
export async function measure({ rows }: { rows: number }): Promise<Values> {
  const sites = await startSites();
  const model = await startSlowModel();
  const pages = sites.hosts.map(({ url }) => `${url}/`);
  const allowed = pages.map((page) => new URL(page).host).join(',');
  try {
    const options = { services: startServices, env: { ...model.env, SCRAPER_ALLOW_HOSTS: allowed } };
    return await onAStack(options, async (stack, client) => {
      await readSites(client, rows, pages);
      return measureOn(stack, client, rows, model);
    });
  } finally {
    await model.stop();
    await sites.stop();
  }
}

/** Inserts the leads and runs their first stage, with the next one paused. */
async function readSites(client: pg.Client, rows: number, pages: string[]): Promise<void> {
  await client.query(`select millrace.pause('leads', 'intel')`);
  await client.query(
    `insert into public.leads (email, company_url, account_id, scrape_status)
     select 'office@example.com', ($2::text[])[1 + n % cardinality($2)], md5((n % $3)::text)::uuid, 'queued'
     from generate_series(1, $1::int) n`,
    [rows, pages, accounts],
  );
  const ready = 'select count(*) = $1 as met from public.leads where intel_status = $2';
  await until(client, 'every site is read', ready, { values: [rows, 'queued'], patienceMs: 300_000, everyMs: 100 });
}

async function measureOn(stack: Stack, client: pg.Client, rows: number, model: Calls): Promise<Values> {
  model.reset();
  const watch = watchStack(
    stack,
    asking.map((stage) => `leads-${stage}`),
  );
  const { rows: said } = await client.query<{ at: Date }>('select clock_timestamp() as at');
  const began = (said[0] as { at: Date }).at;
  await client.query(`select millrace.unpause('leads', 'intel')`);
  await until(client, 'every lead has its message', nothingRuns, { patienceMs: 900_000, everyMs: 100 });
  const used = watch.end();
  const outcome = await outcomeOf(client, { pipeline: 'leads', began });
  const waits = asking.map((_, stage) => Array.from({ length: rows }, (_, row) => waitOf(stage * rows + row + 1)));
  const bought = [...model.ofRow.values()].reduce((sum, calls) => sum + calls, 0);
  const ideal = makespan(waits, places) / 1000;
  return columns({ ...outcome, ideal, rows, bought, transitions: rows * asking.length, calls: model, used });
}
