import { asCommands } from '../operate/as-commands.ts';
import { callDatabase } from './call-database.ts';

/** A check of doctor() that failed: `what` says how it should be, `detail` how it is and what helps. */
export interface Finding {
  what: string;
  detail: string;
}

/** Whether the database is well. */
export interface Health {
  ok: boolean;
  findings: Finding[];
  /** Of what release the engine in the database is, and at which level. */
  release: string;
  level: number;
  /** The digest of each pipeline's definition, by its name. */
  definitions: Record<string, string>;
}

/** Asks the database how it is, through the Data API. Throws a CommandError where it does not say. */
export async function readHealth(url: string, headers: Record<string, string>): Promise<Health> {
  const { findings, ...health } = await callDatabase<Health>(url, headers, 'millrace_health');
  return { ...health, findings: findings.map(({ what, detail }) => ({ what, detail: asCommands(detail) })) };
}

/** The failed checks for a person; where a remedy is SQL also by which command that runs: `query`. */
export function findingLines(findings: Finding[], query: string): string[] {
  const isSql = findings.some(({ detail }) => /\b(select|create|revoke|grant) /.test(detail));
  return [
    ...findings.flatMap(({ what, detail }) => [`✗ ${what}`, `    ${detail}`]),
    ...(isSql ? [`SQL is run in the dashboard's SQL editor, or by: ${query} "SQL"`] : []),
  ];
}
