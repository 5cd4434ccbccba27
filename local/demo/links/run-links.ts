// The demo of the links pipelines, on a stack of its own.
import type pg from 'pg';
import pc from 'picocolors';
import { readSettings } from '../../platform/settings.ts';
import { allowHosts } from '../leads/leads.ts';
import { fitTo, heading, onAStack, print } from '../on-a-stack.ts';
import { countRuns } from '../report.ts';
import { startBoards } from '../samples/links/server.ts';
import { demoSettings } from '../settings.ts';
import { stuck } from '../watch-progress.ts';
import {
  addRule,
  endBypass,
  fewJobs,
  judgeNow,
  leaveOut,
  manyJobs,
  openGate,
  rule,
  slowDown,
  slowGate,
  sweep,
  takeUp,
} from './alert-on-backlog.ts';
import { linkSteps } from './next-steps-links.ts';
import { forgetPauses, printAlerts, printCauses, printJobs, printSources } from './report-links.ts';
import { type Samples, sampleLinks } from './sample-links.ts';
import { copySheet, type DemoSource, sourcesFolder, writeSamples } from './source-files.ts';
import { watchLinks } from './watch-links.ts';

export interface LinksArguments {
  keep: boolean;
  /** Links of the user's own; with none, and no sheet, the samples are taken. */
  urls: URL[];
  sheet: string | null;
}

/** The width of a line, in columns. */
const widest = 100;

/** The sources and links that the demo takes in. */
interface Given {
  sources: DemoSource[];
  urls: URL[];
  samples: Samples | null;
}

/** Runs the links pipelines from a sheet and a data source to jobs. Resolves to the exit code. */
export async function runLinks({ keep, urls, sheet }: LinksArguments, ending: AbortSignal): Promise<number> {
  fitTo(widest);
  const { folder, remove } = sourcesFolder();
  const boards = await startBoards();
  try {
    const samples = urls.length > 0 || sheet !== null ? null : sampleLinks(boards);
    const sources = samples ? writeSamples(folder, samples) : sheet === null ? [] : [copySheet(folder, sheet)];
    const settings = demoSettings(readSettings(), 'links');
    const reachable = samples ? boards.urls : urls.map(({ href }) => href);
    Object.assign(settings.env, {
      SOURCES_FOLDER: folder,
      ...(reachable.length > 0 && { SCRAPER_ALLOW_HOSTS: allowHosts(reachable, settings.env.SCRAPER_ALLOW_HOSTS) }),
    });
    const title = 'Millrace: from links to jobs and companies, on Supabase without Docker';
    return await onAStack({ title, settings, keep, ending }, (_, watching) =>
      show(watching.client, { sources, urls, samples }, folder, (...how) => watchLinks(watching, ...how)),
    );
  } finally {
    await boards.stop();
    remove();
  }
}

type Watch = (resting: string[], sweeps?: boolean) => Promise<boolean>;

async function show(client: pg.Client, given: Given, folder: string, watch: Watch) {
  const isSlowed = given.samples !== null;
  await enter(client, given);
  if (isSlowed) await slow(client);
  heading('3. How far the links are');
  if (isSlowed) {
    await watch(['classified', 'queued', 'scraping', 'scraped', 'staged', 'error', 'dead']);
    // The sweep passes the jobs that wait behind others at their gate.
    await client.query(sweep);
  }
  const resting = isSlowed ? ['classified', 'staged', 'error'] : ['error'];
  if (!(await watch([...resting, 'extracted', 'dead']))) return outcome(folder, given, stuck);

  heading('4. The sources');
  const failing = await printSources(client, print);
  if (isSlowed) {
    print(
      pc.dim('  The other rows of both were known: fourteen are links that stand there twice, in another spelling.'),
    );
    if (!(await openAgain(client, watch))) return outcome(folder, given, stuck);
  }
  heading(`${isSlowed ? 7 : 5}. What waits for another try`);
  if (given.samples) {
    await enterByHand(client, given.samples.busy);
    if (!(await watch(['error', 'extracted', 'dead']))) return outcome(folder, given, stuck);
    await forgetPauses(client, print);
  }
  await retryErrors(client, isSlowed);
  if (!(await watch(['error', 'extracted', 'dead']))) return outcome(folder, given, stuck);
  if (isSlowed) {
    await judgeNow(client);
    await printAlerts(client, rule, print);
  }
  heading(`${isSlowed ? 8 : 6}. What ended without a job, and why`);
  await printCauses(client, 'dead', print);
  heading(`${isSlowed ? 9 : 7}. Jobs and companies`);
  await printJobs(client, print);
  return outcome(folder, given, failing > 0 ? 'A source could not be read.' : await surprise(client, given.samples));
}

/** Slows the pipeline in two places, and prints how. */
async function slow(client: pg.Client): Promise<void> {
  await slowDown(client);
  for (const [statement, meaning] of [
    [addRule, `over ${manyJobs} waiting jobs are an alert`],
    [slowGate, `the gate lets ${fewJobs} jobs through`],
    [leaveOut, 'links stay staged for now'],
  ]) {
    print(`  ${pc.cyan(statement as string)}  ${pc.dim(meaning as string)}`);
  }
}

/** Shows the alert about jobs at the gate, opens the gate, and takes up the jobs that went on without the model. */
async function openAgain(client: pg.Client, watch: Watch): Promise<boolean> {
  heading('5. An alert: jobs pile up at their gate');
  await judgeNow(client);
  await printAlerts(client, rule, print);
  print(`  ${pc.cyan(`${openGate} ${sweep}`)}  ${pc.dim('passes two a second')}`);
  await client.query(openGate);
  if (!(await watch(['staged', 'error', 'extracted', 'dead'], true))) return false;

  heading('6. The model is back');
  // Sweeps once more, so that jobs which have just come are left out, and all of them are taken up.
  await client.query(sweep);
  await client.query(endBypass);
  const { rows } = await client.query<{ take_up: number }>(takeUp);
  print(`  ${pc.cyan(endBypass)}`);
  print(`  ${pc.cyan(takeUp)}  ${pc.dim(`${rows[0]?.take_up} links, from where they were left`)}`);
  return watch(['error', 'extracted', 'dead']);
}

/** Prints the links that wait for another try, and has them tried now. */
async function retryErrors(client: pg.Client, hasSamples: boolean): Promise<void> {
  if ((await printCauses(client, 'error', print)) === 0) return print(pc.dim('  nothing'));
  const retry = "update linkedin_links set next_attempt_at = now() where status = 'error';";
  print(`  ${pc.cyan(retry)}  ${pc.dim('tries them now')}`);
  await client.query(retry.replace('linkedin_links', 'public.linkedin_links'));
  if (hasSamples) print(pc.dim('  A captcha stays one: that link is tried four times more.'));
}

/** Adds the sources and links, which are due at once. */
async function enter(client: pg.Client, { sources, urls, samples }: Given): Promise<void> {
  heading(samples ? '2. Links from a sheet and a data source' : '2. Your links');
  if (sources.length > 0) print(`  ${pc.cyan('insert into link_sources (kind, address, column_name) values')}`);
  for (const [n, { kind, address, column }] of sources.entries()) {
    const values = [kind, address, column].map((value) => (value === null ? 'null' : `'${value}'`)).join(', ');
    print(`    ${pc.cyan(`(${values})${n < sources.length - 1 ? ',' : ';'}`)}`);
    await client.query('insert into public.link_sources (kind, address, column_name) values ($1, $2, $3)', [
      kind,
      address,
      column,
    ]);
  }
  await enterByHand(
    client,
    urls.map(({ href }) => href),
  );
  await client.query(sweep);
}

/** Adds links that belong to no source. */
async function enterByHand(client: pg.Client, links: string[]): Promise<void> {
  const [first, ...others] = links;
  if (first === undefined) return;
  const more = others.length > 0 ? pc.dim(`  and ${others.length} more`) : '';
  print(`  ${pc.cyan(`insert into linkedin_links (raw_url) values ('${first}');`)}${more}`);
  await client.query('insert into public.linkedin_links (raw_url) select unnest($1::text[]) on conflict do nothing', [
    links,
  ]);
}

/** Resolves to a sentence about an outcome that the samples are not made for; undefined where there is none. */
async function surprise(client: pg.Client, samples: Samples | null): Promise<string | undefined> {
  if (!samples) return undefined;
  const { rows } = await client.query<{ raw_url: string; status: string }>(
    'select raw_url, status from public.linkedin_links order by id',
  );
  const odd = rows.find(({ raw_url, status }) => (status === 'extracted') === samples.broken.has(raw_url.trim()));
  if (odd) return `${odd.raw_url} ended ${odd.status}, which it was not made for.`;
  const resolved = await client.query('select from millrace.alerts where rule = $1 and resolved_at is not null', [
    rule,
  ]);
  return resolved.rowCount === 1 ? undefined : 'The alert was not raised and resolved once.';
}

function outcome(folder: string, { samples, urls }: Given, complaint: string | undefined) {
  const link = samples?.sheet[0]?.link ?? urls[0]?.href ?? 'https://…';
  const subject = { name: 'Runs', count: countRuns, last: 'link' };
  return {
    subject,
    failed: complaint !== undefined,
    complaint,
    nextSteps: linkSteps(folder, link),
  };
}
