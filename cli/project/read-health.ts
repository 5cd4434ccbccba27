import { asCommands } from '../operate/as-commands.ts';
import { callDatabase } from './call-database.ts';

/** Whether the database is well; `amiss` has what doctor() finds otherwise, each with its remedy. */
export interface Health {
  ok: boolean;
  amiss: string[];
  /** Of what release the engine in the database is, and at which level. */
  release: string;
  level: number;
  /** The digest of each pipeline's definition, by its name. */
  definitions: Record<string, string>;
}

/** Asks the database how it is, through the Data API. Throws a CommandError where it does not say. */
export async function readHealth(url: string, headers: Record<string, string>): Promise<Health> {
  const { findings, ...health } = await callDatabase<
    Omit<Health, 'amiss'> & { findings: { what: string; detail: string }[] }
  >(url, headers, 'millrace_health');
  return { ...health, amiss: findings.map(({ what, detail }) => `${what}: ${asCommands(detail)}`) };
}
