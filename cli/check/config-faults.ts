// Finds faults of the configuration: keys that a deployment refuses, and a schema without which no function reaches the engine.
import path from 'node:path';
import { type ProjectConfig, readConfig } from '../../local/platform/functions/project-config.ts';
import type { Project } from '../project/find-project.ts';

/** Returns a sentence, with the remedy, for each fault of the configuration. */
export function configFaults({ root, config }: Project): string[] {
  const said = readConfig(path.join(root, 'supabase'));
  return [...formerKeys(config, said), ...schemaFaults(config, said)];
}

/** Keys that version 3 of the supabase CLI refuses. `supabase init` wrote inbucket for years. */
function formerKeys(file: string, { inbucket, experimental, auth }: ProjectConfig): string[] {
  const external = auth?.external ?? {};
  const former = [
    ...(inbucket === undefined ? [] : [['inbucket', 'local_smtp']]),
    ...(experimental?.orioledb_version ? [['experimental.orioledb_version', 'db.orioledb_version']] : []),
    ...['linkedin', 'slack'].flatMap((name) =>
      name in external ? [[`auth.external.${name}`, `auth.external.${name}_oidc`]] : [],
    ),
  ];
  return former.map(([key, now]) => `${file} has ${key}, which the supabase CLI 3 refuses: call it ${now}.`);
}

/** Returns a sentence, with the remedy, where the configuration lists schemas and leaves out `public`. */
function schemaFaults(file: string, { api }: ProjectConfig): string[] {
  const { schemas = [] } = api ?? {};
  if (schemas.length === 0 || schemas.includes('public')) return [];
  return [
    `${file} has the Data API serve ${schemas.join(', ')} and not public, where functions reach the engine: add "public" to ` +
      'the schemas below api, and to the exposed schemas of the hosted project.',
  ];
}
