// The demo of the leads pipeline, on a stack of its own.
import pg from 'pg';
import pc from 'picocolors';
import { leads as pipeline } from '../../supabase/functions/_pipelines/leads.ts';
import { readSettings } from '../settings.ts';
import { startSites } from '../sites/server.ts';
import { startStack } from '../stack.ts';
import { functionTroubles } from './function-troubles.ts';
import { allowHosts, insertLeads, leadsFor, sampleLeads, startStatement } from './leads.ts';
import { printNextSteps } from './next-steps.ts';
import { printFailures, printInvariants, printMessages, printTotals, readFailures } from './report.ts';
import { demoSettings } from './settings.ts';
import { watchLeads } from './watch.ts';

const stages = Object.keys(pipeline.stages);
const print = (line: string) => console.log(line);
const heading = (text: string) => print(`\n${pc.bold(text)}`);

/** Runs the leads pipeline from one SQL update to the written messages. Resolves to the exit code. */
export async function runLeads(
  { keep, urls }: { keep: boolean; urls: URL[] },
  ending: AbortController,
): Promise<number> {
  const cleanUp: (() => Promise<unknown>)[] = [];
  const troubles = functionTroubles();
  try {
    const settings = demoSettings(readSettings());
    heading('Millrace: from web sites to outreach messages, on Supabase without Docker');
    for (const line of settings.modelNote) print(pc.dim(`  ${line}`));
    for (const line of settings.warnings) print(pc.yellow(`  ${line}`));

    heading('1. Starting the stack');
    const started = Date.now();
    const sites = await startSites();
    cleanUp.push(() => sites.stop());
    const leads = urls.length > 0 ? leadsFor(urls) : sampleLeads(sites);
    const reachable = urls.length > 0 ? leads.map((lead) => lead.url) : [sites, ...sites.hosts].map(({ url }) => url);
    settings.env.SCRAPER_ALLOW_HOSTS = allowHosts(reachable, settings.env.SCRAPER_ALLOW_HOSTS);
    const stack = await startStack({
      env: settings.env,
      progress: (message) => print(`  ${message}`),
      log: troubles.add,
    });
    cleanUp.push(() => stack.stop());
    print(`  ready in ${((Date.now() - started) / 1000).toFixed(1)} s`);
    if (ending.signal.aborted) return 130;

    const client = new pg.Client({ connectionString: stack.dbUrl });
    client.on('error', () => {});
    await client.connect();
    cleanUp.push(() => client.end());

    heading(`2. ${leads.length} ${leads.length === 1 ? 'lead' : 'leads'}, started by one SQL update`);
    await insertLeads(client, leads);
    print(`  ${pc.cyan(startStatement)}\n`);
    await client.query(startStatement);
    const { limitMs } = settings;
    const finished = await watchLeads({ client, stages, limitMs, signal: ending.signal, out: process.stdout });
    if (ending.signal.aborted) return 130;

    heading('3. The messages');
    await printMessages(client, print);
    const failures = await readFailures(client);
    const broken = new Set(leads.filter((lead) => !lead.shouldSucceed).map((lead) => lead.url));
    if (failures.length > 0) {
      heading('4. The leads that have none');
      printFailures(failures, broken, print);
    }

    heading('In total');
    const count = ({ runs, finished }: { runs: number; finished: number }) => `${runs}, ${finished} with a message`;
    await printTotals(client, { subject: 'Leads', count, last: 'lead' }, print);
    const violations = await printInvariants(client, print);

    const unexpected = failures.filter((failure) => !broken.has(failure.company_url));
    const failed = !finished || violations > 0 || unexpected.length > 0;
    if (!finished) print(pc.red(`\nNot finished after ${limitMs / 1000} s.`));
    if (failed && troubles.lines().length > 0) {
      heading('What the functions warned of last');
      for (const line of troubles.lines()) print(pc.dim(`  ${line}`));
    }

    printNextSteps(keep, stack, sites.url, print);
    if (keep && !ending.signal.aborted) {
      await new Promise((resolve) => ending.signal.addEventListener('abort', resolve, { once: true }));
    }
    return failed ? 1 : 0;
  } finally {
    if (keep || ending.signal.aborted) print(pc.dim('\nstopping …'));
    for (const step of cleanUp.reverse()) await step();
  }
}
