// The demo of the leads pipeline, on a stack of its own.
import { randomUUID } from 'node:crypto';
import pc from 'picocolors';
import { leads as pipeline } from '../../../supabase/functions/_pipelines/leads.ts';
import { pageLink } from '../../platform/page-link.ts';
import { readSettings } from '../../platform/settings.ts';
import { heading, onAStack, print } from '../on-a-stack.ts';
import { printCosts } from '../print-costs.ts';
import { printFailures, printMessages, readFailures } from '../report.ts';
import { startSites } from '../samples/sites/server.ts';
import { demoSettings } from '../settings.ts';
import { stuck } from '../watch-progress.ts';
import { allowHosts, insertLeads, leadsFor, sampleLeads, startStatement } from './leads.ts';
import { leadSteps } from './next-steps-leads.ts';
import { watchLeads } from './watch.ts';

const stages = Object.keys(pipeline.stages);
const costs = {
  view: 'lead_costs',
  by: ['account_id'],
  entities: 'leads',
  prices: ['LLM_PRICE_INPUT', 'LLM_PRICE_OUTPUT'],
};

/** Runs the leads pipeline from one SQL update to the written messages. Resolves to the exit code. */
export async function runLeads({ keep, urls }: { keep: boolean; urls: URL[] }, ending: AbortSignal): Promise<number> {
  const settings = demoSettings(readSettings());
  const sites = await startSites();
  const leads = urls.length > 0 ? leadsFor(urls) : sampleLeads(sites);
  const reachable = urls.length > 0 ? leads.map((lead) => lead.url) : [sites, ...sites.hosts].map(({ url }) => url);
  settings.env.SCRAPER_ALLOW_HOSTS = allowHosts(reachable, settings.env.SCRAPER_ALLOW_HOSTS);
  const title = 'Millrace: from web sites to outreach messages, on Supabase without Docker';
  try {
    return await onAStack({ title, settings, keep, ending }, async (stack, watching) => {
      const { client } = watching;
      heading(`2. ${leads.length} ${leads.length === 1 ? 'lead' : 'leads'}, started by one SQL update`);
      const account = randomUUID();
      await insertLeads(client, leads, account);
      const pageUrl = await pageLink(stack, 'leads', { account_id: account });
      if (keep) print(`  See their stages move at\n  ${pageUrl}\n`);
      print(`  ${pc.cyan(startStatement)}\n`);
      await client.query(startStatement);
      const finished = await watchLeads(watching, stages);
      if (ending.aborted) return undefined;

      heading('3. The messages');
      await printMessages(client, print);
      const failures = await readFailures(client);
      const broken = new Set(leads.filter((lead) => !lead.shouldSucceed).map((lead) => lead.url));
      if (failures.length > 0) {
        heading('4. The leads that have none');
        printFailures(failures, broken, print);
      }
      heading(`${failures.length > 0 ? 5 : 4}. What it cost, by account`);
      await printCosts(client, costs, settings.isFree, print);
      return {
        subject: {
          name: 'Leads',
          count: ({ runs, finished }) => `${runs}, ${finished} with a message`,
          last: 'lead',
        },
        failed: !finished || failures.some((failure) => !broken.has(failure.company_url)),
        complaint: finished ? undefined : stuck,
        nextSteps: leadSteps(sites.url, pageUrl),
      };
    });
  } finally {
    await sites.stop();
  }
}
