// The stages of a lead, its attempts in words, and all there is to know when something did not come about.
import type { Stack } from '../../../local/platform/stack.ts';
import type { Row } from '../engine.ts';

export const stages = ['scrape', 'intel', 'strategy', 'subject', 'messaging'] as const;
export type StageName = (typeof stages)[number];

export interface Attempt extends Row {
  attempt_id: string;
  stage: StageName;
  number: number;
  state: string;
  retry_count: number;
  service: string | null;
  job_id: string | null;
  error_code: string | null;
  error_message: string | null;
  usage: Row | null;
}

/** An attempt as `stage number state`, with the code of a failure. */
export function describeAttempt({ stage, number, state, error_code }: Attempt): string {
  return [stage, number, state, error_code].filter((part) => part !== null).join(' ');
}

/** The facts that database and functions know about leads that are not completed, as text. */
export async function diagnose(leads: {
  stack: Stack;
  rows<T extends Row>(statement: string): Promise<T[]>;
}): Promise<string> {
  const attempts = await leads.rows<Attempt & { entity_id: string }>(
    `select r.entity_id, t.* from millrace.runs r, millrace.timeline(r.id) t
     where r.status <> 'completed' order by r.id desc, t.attempt_id limit 60`,
  );
  const table = (title: string, rows: Row[]) => [`${title}:`, ...rows.map((row) => `  ${JSON.stringify(row)}`)];
  return [
    'attempts of runs that are not completed:',
    ...attempts.map((a) => `  ${a.entity_id.slice(0, 8)} ${describeAttempt(a)} ${a.error_message ?? ''}`),
    ...table('millrace.log', await leads.rows('select at, level, code, message from millrace.log order by id')),
    ...table('violated', await leads.rows('select * from millrace.check_invariants()')),
    ...table('health', await leads.rows('select * from millrace.stage_health')),
    ...table('unsent', await leads.rows('select id, url from net.http_request_queue order by id')),
    ...table(
      'answers to wake-ups',
      await leads.rows(
        'select id, status_code, content, error_msg from net._http_response order by created desc limit 10',
      ),
    ),
    ...[...stages.map((stage) => `leads-${stage}`), 'millrace'].flatMap((name) => [
      `${name} wrote:`,
      ...leads.stack.functions
        .logs(name)
        .slice(-15)
        .map((line) => `  ${line}`),
    ]),
  ].join('\n');
}
