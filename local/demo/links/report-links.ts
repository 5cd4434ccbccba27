import pg from 'pg';
import pc from 'picocolors';
import { type LinkAddress, linkAddress } from '../../../supabase/functions/_links/link-address.ts';
import { sayAlert } from '../../../supabase/functions/_millrace/alerts/say-alert.ts';
import type { AlertFacts } from '../../../supabase/functions/_millrace/engine/alert-contract.ts';
import { causeLines } from '../group-causes.ts';
import { printTable } from '../print-table.ts';
import { wrapText } from '../wrap-text.ts';

type Print = (line: string) => void;

/** Prints what each source has brought, and what is wrong with it. Resolves to how many fail. */
export async function printSources(client: pg.Client, print: Print): Promise<number> {
  const { rows } = await client.query<{ kind: string; address: string; found: number; error: string | null }>(
    'select kind, address, found, last_error as error from public.link_sources order by created_at, address',
  );
  printTable(
    [['source'], ['address'], ['new links', 'right']],
    rows.map(({ kind, address, found }) => [kind, address, String(found)]),
    print,
  );
  const failed = rows.filter(({ error }) => error !== null);
  for (const { kind, error } of failed)
    for (const line of wrapText(`${kind}: ${error}`, 86)) print(`  ${pc.red('✗')} ${line}`);
  return failed.length;
}

/** Prints why links show a word, alike ones together. Resolves to how many there are. */
export async function printCauses(client: pg.Client, word: string, print: Print): Promise<number> {
  const { rows } = await client.query<LinkAddress & { error: string | null }>(
    `select raw_url, canonical_url, last_error as error from public.linkedin_links where status = $1
     order by last_error, id`,
    [word],
  );
  if (rows.length > 0) print(`  ${(word === 'dead' ? pc.red : pc.yellow)(`${rows.length} ${word}`)}`);
  const said = rows.map(({ error, ...link }) => ({
    name: fetchedFrom(link),
    cause: causeOf(error ?? 'no error given'),
  }));
  for (const line of causeLines(said)) print(line);
  return rows.length;
}

/** Returns the first clause of an error, without the address, which stands beside it, and the remedy, which last_error has. */
function causeOf(error: string): string {
  const [first = error] = error.replace(/^https?:\/\/\S+: /, '').split(/(?<=[a-z\d])[.;:](?: |$)/);
  return first;
}

/** Returns the address that was asked for, or the text that is none. */
function fetchedFrom(link: LinkAddress): string {
  try {
    return linkAddress(link).href;
  } catch {
    return link.raw_url;
  }
}

/** Prints the alerts of a rule, raised and resolved. */
export async function printAlerts(client: pg.Client, rule: string, print: Print): Promise<void> {
  const { rows } = await client.query<{ of: AlertFacts; raised: string; resolved: string | null }>(
    `select millrace.alert_json(a) as of, to_char(raised_at, 'HH24:MI:SS') as raised, to_char(resolved_at, 'HH24:MI:SS') as resolved
     from millrace.alerts a where rule = $1 order by id`,
    [rule],
  );
  for (const { of, raised, resolved } of rows) {
    const times = pc.dim(`(raised ${raised}${resolved === null ? '' : `, resolved ${resolved}`})`);
    print(`  ${resolved === null ? pc.red('raised') : pc.green('resolved')}  ${sayAlert(of)}  ${times}`);
  }
  if (rows.length === 0) print(pc.red('  none was raised'));
}

/** Prints which shared limits a service has paused, and lets them go on. */
export async function forgetPauses(client: pg.Client, print: Print): Promise<void> {
  const { rows } = await client.query<{ name: string; keys: string }>(
    "select name, string_agg(coalesce(key, 'all'), ', ') as keys from millrace.limit_pauses group by name",
  );
  for (const { name, keys } of rows) {
    print(`  ${pc.yellow(name)} takes nothing of ${keys}, which asked for patience`);
    const forget = `select millrace.unthrottle_limit(${pg.escapeLiteral(name)});`;
    print(`  ${pc.cyan(forget)}  ${pc.dim('asks again at once; else it goes on by itself')}`);
    await client.query(forget);
  }
}

const shownJobs = 3;

/** Prints the first jobs with their companies, and how many there are. */
export async function printJobs(client: pg.Client, print: Print): Promise<void> {
  const { rows } = await client.query<Record<'company' | 'title' | 'location' | 'salary', string | null>>(
    `select c.name as company, j.title, j.location, j.salary
     from public.jobs j left join public.companies c on c.id = j.company_id order by c.name, j.title limit $1`,
    [shownJobs],
  );
  printTable(
    [['company'], ['job'], ['where'], ['pay']],
    rows.map(({ company, title, location, salary }) => [company, title, location, salary].map(cut)),
    print,
  );
  const { rows: counted } = await client.query<{ jobs: number; companies: number }>(
    'select (select count(*)::int from public.jobs) as jobs, (select count(*)::int from public.companies) as companies',
  );
  print(
    pc.dim(`  ${counted[0]?.jobs} jobs of ${counted[0]?.companies} companies, each under one name however it is spelt`),
  );
}

function cut(text: string | null): string {
  const shown = (text ?? '–').replace(/\s+/g, ' ');
  return shown.length > 34 ? `${shown.slice(0, 33)}…` : shown;
}
