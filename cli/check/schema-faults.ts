// Whether the Data API serves the schema by which functions reach the engine.
import path from 'node:path';
import { readConfig } from '../../local/platform/functions/project-config.ts';
import type { Project } from '../project/find-project.ts';

/** A sentence, with the remedy, where the configuration lists schemas and leaves out `public`. */
export function schemaFaults({ root, config }: Project): string[] {
  const { schemas = [] } = readConfig(path.join(root, 'supabase')).api ?? {};
  if (schemas.length === 0 || schemas.includes('public')) return [];
  return [
    `${config} has the Data API serve ${schemas.join(', ')} and not public, where functions reach the engine: add "public" to ` +
      'the schemas below api, and to the exposed schemas of the hosted project.',
  ];
}
