// What `npm run pipelines:sync` does: writes a new migration for each pipeline whose TypeScript definition differs from what the
// existing migrations define, children before their parents; never edits one.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { functionFaults } from './pipeline-functions.ts';
import { compactText, type DefinitionJson, definitionsIn, pipelineMigration } from './pipeline-migration.ts';
import { childrenFirst, droppedFaults, referenceFaults } from './pipeline-order.ts';
import { grantFaults } from './table-grants.ts';

/** Takes what the user is told. */
export type Teller = Pick<Console, 'log' | 'warn'>;

/**
 * Every export of `_pipelines/*.ts` that is a pipeline definition, as the JSON that millrace.define() takes. Throws an
 * error that names the file when one cannot be loaded.
 */
async function readPipelines(pipelinesFolder: string): Promise<DefinitionJson[]> {
  const files = fs.readdirSync(pipelinesFolder).filter((name) => name.endsWith('.ts'));
  const modules = await Promise.all(files.sort().map((name) => loadPipelines(pipelinesFolder, name)));
  const exported = modules.flatMap((module) =>
    Object.values(module).filter(
      (value): value is { toJson(): DefinitionJson } => typeof (value as { toJson?: unknown })?.toJson === 'function',
    ),
  );
  // One file may export what another has defined.
  return [...new Set(exported)].map((pipeline) => pipeline.toJson());
}

async function loadPipelines(pipelinesFolder: string, name: string): Promise<Record<string, unknown>> {
  try {
    return await import(pathToFileURL(path.join(pipelinesFolder, name)).href);
  } catch (error) {
    throw new Error(`supabase/functions/_pipelines/${name}: ${(error as Error).message}`);
  }
}

/** A timestamp after every existing migration, so that the new one is applied last. */
function nextTimestamp(existing: string[]): string {
  const now = new Date().toISOString().replaceAll(/\D/g, '').slice(0, 14);
  const last =
    existing
      .map((name) => name.slice(0, 14))
      .sort()
      .at(-1) ?? '0';
  return now > last ? now : String(BigInt(last) + 1n);
}

/**
 * Writes the migrations that are missing in `supabaseFolder`, or with `check` names them. Throws an error with what is amiss and
 * the remedy.
 */
export async function syncPipelines(supabaseFolder: string, check: boolean, teller: Teller): Promise<void> {
  const migrationsFolder = path.join(supabaseFolder, 'migrations');
  const pipelines = await readPipelines(path.join(supabaseFolder, 'functions', '_pipelines'));
  const faults = [...referenceFaults(pipelines), ...functionFaults(pipelines, supabaseFolder)];
  const existing = fs
    .readdirSync(migrationsFolder)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  const texts = existing.map((name) => fs.readFileSync(path.join(migrationsFolder, name), 'utf8'));
  const defined = definitionsIn(texts);
  faults.push(...droppedFaults(pipelines, defined));
  const changed = childrenFirst(pipelines).filter((pipeline) => {
    const before = defined.get(pipeline.pipeline);
    return !before || compactText(before) !== compactText(pipeline);
  });
  if (check && changed.length > 0) {
    const names = changed.map((pipeline) => pipeline.pipeline).join(', ');
    faults.push(
      `No migration defines the present state of: ${names}. Run \`npm run pipelines:sync\` and commit what it writes.`,
    );
  }
  // A migration never changes once it is written, so none is written for a definition that may yet be corrected.
  if (faults.length > 0) throw new Error(faults.join('\n'));
  for (const warning of grantFaults(pipelines, texts)) teller.warn(warning);
  for (const pipeline of changed) {
    const name = `${nextTimestamp(existing)}_pipeline_${pipeline.pipeline}.sql`;
    fs.writeFileSync(path.join(migrationsFolder, name), pipelineMigration(pipeline, defined));
    existing.push(name);
    teller.log(`Wrote supabase/migrations/${name}.`);
  }
  if (changed.length === 0) {
    teller.log('The migrations define every pipeline as it stands in supabase/functions/_pipelines.');
  } else {
    teller.log(
      'Run `npm run check -- --write`, which renews the schema snapshot and the types, then `npx supabase db push --remote`.',
    );
  }
}
