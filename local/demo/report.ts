import type pg from 'pg';
import pc from 'picocolors';
import { sayFault } from '../../supabase/functions/_millrace/alerts/say-alert.ts';
import type { HealthFault } from '../../supabase/functions/_millrace/engine/metrics-contract.ts';
import { wrapText } from './wrap-text.ts';

interface Message {
  company_url: string;
  company: string;
  lines: string[];
  subject: string;
  body: string;
  call_to_action: string;
}

const columns = Math.min(process.stdout.columns ?? 92, 92);

/** Prints the messages that were written, in the order of the leads. */
export async function printMessages(client: pg.Client, print: (line: string) => void): Promise<void> {
  const { rows } = await client.query<Message>(
    `select company_url, intel_result ->> 'company_name' as company, subject_result -> 'lines' as lines,
       messaging_result ->> 'subject' as subject, messaging_result ->> 'body' as body,
       messaging_result ->> 'call_to_action' as call_to_action
     from public.leads where messaging_status = 'completed' order by email, company_url`,
  );
  if (rows.length === 0) print('  none');
  for (const message of rows) {
    print('');
    print(`  ${pc.bold(message.company)}  ${pc.dim(message.company_url)}`);
    for (const line of message.lines) {
      const chosen = line === message.subject;
      print(`    ${chosen ? pc.green('›') : ' '} ${chosen ? line : pc.dim(line)}`);
    }
    if (!message.lines.includes(message.subject)) print(`    ${pc.green('›')} ${message.subject}`);
    print('');
    for (const line of wrapText(message.body, columns - 6)) print(`      ${line}`.trimEnd());
    for (const line of wrapText(`→ ${message.call_to_action}`, columns - 6)) print(`      ${line}`);
  }
}

export interface Failure {
  company_url: string;
  stage: string;
  status: string;
  error: string | null;
}

/** Resolves to the leads that have no message, with the stage where each stands and why. */
export async function readFailures(client: pg.Client): Promise<Failure[]> {
  const { rows } = await client.query<Failure>(
    `select company_url, current_stage as stage, current_status as status, current_error as error
     from public.lead_pipeline_status where current_stage <> 'completed' order by email, company_url`,
  );
  return rows;
}

/** Prints the leads without a message, and marks those that were meant to fail. */
export function printFailures(failures: Failure[], expected: Set<string>, print: (line: string) => void): void {
  for (const { company_url: url, stage, status, error } of failures) {
    const note = expected.has(url) ? pc.dim('  (broken on purpose)') : '';
    print(`  ${pc.red('✗')} ${url}${note}`);
    for (const line of wrapText(`${stage} ${status}: ${error ?? 'no error given'}`, columns - 6))
      print(`      ${line}`);
  }
}

interface Totals {
  runs: number;
  /** How many of the runs are another run's children. */
  children: number;
  finished: number;
  failed: number;
  live: number;
  seconds: number | null;
  attempts: number;
  retries: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number | null;
}

/** How many runs there are, and how many came to which end. */
export type RunCounts = Pick<Totals, 'runs' | 'children' | 'finished' | 'failed' | 'live'>;

/** Says how many runs there are and what became of them; those of which there are none are left out. */
export function countRuns({ runs, finished, failed, live }: RunCounts): string {
  const others = [failed > 0 ? `, ${failed} failed` : '', live > 0 ? `, ${live} to go on` : ''];
  return `${runs}: ${finished} completed${others.join('')}`;
}

/** The subject of the totals: its name, and the text of its counts. */
export interface Subject {
  name: string;
  count(totals: RunCounts): string;
  /** The noun in the total time, such as `link` in "to the last link". */
  last: string;
  /** Totals of the demo's own, by name, to stand first. */
  before?: Record<string, string>;
}

/** Prints time, attempts, tokens and cost of all runs, below a first line about what they ran on. */
export async function printTotals(client: pg.Client, subject: Subject, print: (line: string) => void): Promise<void> {
  const { rows } = await client.query<Totals>(
    `select count(distinct r.id)::int as runs, count(distinct r.id) filter (where r.fan_out_id is not null)::int as children,
       count(distinct r.id) filter (where r.status = 'completed')::int as finished,
       count(distinct r.id) filter (where r.status = 'failed')::int as failed,
       count(distinct r.id) filter (where r.status = 'running')::int as live,
       extract(epoch from max(r.finished_at) - min(r.created_at))::float as seconds,
       count(*)::int as attempts, count(*) filter (where t.retry_count > 0)::int as retries,
       coalesce(sum((t.usage ->> 'input_tokens')::int), 0)::int as input_tokens,
       coalesce(sum((t.usage ->> 'output_tokens')::int), 0)::int as output_tokens,
       sum((t.usage ->> 'cost_usd')::numeric)::float as cost_usd
     from millrace.runs r cross join lateral millrace.timeline(r.id) t`,
  );
  const totals = rows[0] as Totals;
  const number = (value: number) => value.toLocaleString('en-US');
  const facts = {
    ...subject.before,
    [subject.name]: subject.count(totals),
    Time: `${(totals.seconds ?? 0).toFixed(1)} s from the update to the last ${subject.last}`,
    Attempts: `${totals.attempts}, ${totals.retries} of them retries`,
    Tokens: `${number(totals.input_tokens)} in, ${number(totals.output_tokens)} out`,
    Cost: describeCost(totals),
  };
  for (const [name, value] of Object.entries(facts)) print(`  ${pc.dim(name.padEnd(11))}${value}`);
}

function describeCost({ cost_usd: cost, input_tokens: tokens }: Totals): string {
  if (tokens === 0) return 'nothing: no model was asked';
  if (cost === null) return 'unknown: set LLM_PRICE_INPUT and LLM_PRICE_OUTPUT';
  return cost === 0 ? 'nothing: the local model is free' : `$${cost.toFixed(4)}`;
}

/** Prints what check_invariants() says; returns the number of violations. */
export async function printInvariants(client: pg.Client, print: (line: string) => void): Promise<number> {
  const { rows } = await client.query<{ rule: string; run_id: string; detail: string }>(
    'select rule, run_id, detail from millrace.check_invariants()',
  );
  const verdict = rows.length === 0 ? pc.green('no violation') : pc.red(`${rows.length} violated`);
  print(`  ${pc.dim('Invariants'.padEnd(11))}millrace.check_invariants(): ${verdict}`);
  for (const row of rows) print(pc.red(`      ${row.rule}: run ${row.run_id}, ${row.detail}`));
  return rows.length;
}

/** Prints whether all is well, and what is not, the most urgent first. */
export async function printFindings(client: pg.Client, print: (line: string) => void): Promise<void> {
  const { rows } = await client.query<{ health: { ok: boolean; faults: HealthFault[]; more: number } }>(
    'select public.millrace_health() as health',
  );
  const { ok, faults = [], more = 0 } = rows[0]?.health ?? { ok: false };
  const found = faults.length + more;
  const verdict = ok
    ? pc.green('all is well')
    : pc.yellow(`${found} ${found === 1 ? 'thing is' : 'things are'} not well`);
  print(`  ${pc.dim('Health'.padEnd(11))}public.millrace_health(): ${verdict}`);
  for (const fault of faults) {
    for (const line of wrapText(sayFault(fault), columns - 6)) print(pc.yellow(`      ${line}`));
  }
}
