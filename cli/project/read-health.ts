import { sayFailed, sayFault, withTimes } from '../../supabase/functions/_millrace/alerts/say-alert.ts';
import type { HealthFault } from '../../supabase/functions/_millrace/engine/metrics-contract.ts';
import { asCommands } from './as-commands.ts';
import { callDatabase } from './call-database.ts';

/** A check of doctor() that failed: `what` says how it should be, `detail` how it is and what helps. */
export interface Finding {
  what: string;
  detail: string;
}

/** Whether the database is well. */
export interface Health {
  /** Whether all is well: no finding, no alert above its bound unless silenced, and the sweep on time. */
  ok: boolean;
  /** The faults, the most urgent first. */
  faults: HealthFault[];
  /** The faults that are no alerts. */
  findings: Finding[];
  /** The release of the engine in the database; `level`: its level. */
  release: string;
  level: number;
  /** The digest of each pipeline's definition, by its name. */
  definitions: Record<string, string>;
}

/** Asks the database how it is, through the Data API. Throws a CommandError where it does not say. */
export async function readHealth(url: string, headers: Record<string, string>): Promise<Health> {
  const health = await callDatabase<Omit<Health, 'findings'>>(url, headers, 'millrace_health');
  const findings = health.faults
    .filter(({ alert }) => !alert)
    .map(({ what, detail }) => ({ what, detail: asCommands(detail ?? '') }));
  return { ...health, findings };
}

/** Returns the failed checks for a person; where a remedy is SQL also by which command that runs: `query`. */
export function findingLines(findings: Finding[], query: string): string[] {
  const isSql = findings.some(({ detail }) => /\b(select|create|revoke|grant) /.test(detail));
  const isFile = findings.some(({ detail }) => /_pipeline_\w+\.sql /.test(detail));
  const [, url = 'URL'] = /'(postgres\S+)'/.exec(query) ?? [];
  return [
    ...findings.flatMap(({ what, detail }) => [`✗ ${sayFailed(what) ?? what}`, `    ${withTimes(detail)}`]),
    ...(isSql ? [`SQL is run in the dashboard's SQL editor, or one statement a call by: ${query} "SQL"`] : []),
    ...(isFile
      ? [`A file of supabase/migrations is run there, or by: psql -1 -v ON_ERROR_STOP=1 -f FILE '${url}'`]
      : []),
  ];
}

/** Returns all that is not well for a person: the failed checks, and open alerts that nobody has silenced. */
export function faultLines({ findings, faults }: Health, query: string): string[] {
  const alerts = faults.filter(({ alert }) => alert).map((fault) => `▲ alert ${fault.alert?.id}: ${sayFault(fault)}`);
  return [...findingLines(findings, query), ...alerts];
}
