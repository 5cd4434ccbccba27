// Writes the parts that all batches of model questions of a project share: tables, a pipeline and two functions.
import fs from 'node:fs';
import path from 'node:path';
import { CommandError } from '../command-error.ts';
import { stampsAfter } from '../migration-stamps.ts';
import type { Change } from '../project/change-set.ts';
import { migrationTexts, sinceUninstall } from '../project/engine-level.ts';
import { migrationsOf, type Project } from '../project/find-project.ts';
import { denoJson, readManifest, runtimeChanges } from '../project/shipped.ts';
import { findDefined } from './add-to-definition.ts';

const functions = { 'model-batches-begin': 'beginBatches', 'model-batches-distribute': 'distributeBatches' };
const definitionFile = 'supabase/functions/_pipelines/model-batches.ts';
const runtime = '../_millrace/batches/model-batches.ts';

/** Resolves to the changes that let a project buy at batch prices, without what it has already, and the functions among them. */
export async function batchChanges(project: Project): Promise<{ changes: Change[]; functions: string[] }> {
  const tables = await tableChanges(project);
  if (await findDefined(project, 'model_batches')) return { changes: tables, functions: [] };
  for (const file of [definitionFile, ...Object.keys(functions).map((folder) => `supabase/functions/${folder}`)]) {
    if (!fs.existsSync(path.join(project.root, file))) continue;
    throw new CommandError(
      `${file} is there, but no definition has pipeline model_batches: export modelBatches of ` +
        '_millrace/batches/model-batches.ts from a file in _pipelines, or move it away.',
    );
  }
  const definition = `export { modelBatches } from '${runtime}';\n`;
  const changes = [
    ...tables,
    { file: definitionFile, text: definition, from: null },
    ...Object.entries(functions).flatMap(([folder, stage]) => functionChanges(folder, stage)),
  ];
  return { changes, functions: Object.keys(functions) };
}

/** Resolves to the migration with the tables; none where a migration makes them. */
async function tableChanges(project: Project): Promise<Change[]> {
  if (sinceUninstall(migrationTexts(project)).some((text) => text.includes('create table public.model_batches')))
    return [];
  const shipped = runtimeChanges(readManifest()).find(({ file }) => file.endsWith('batches/model-batches.sql'));
  const [stamp] = await stampsAfter(migrationsOf(project), 1);
  return shipped ? [{ file: `supabase/migrations/${stamp}_model_batches.sql`, text: shipped.text }] : [];
}

const functionChanges = (folder: string, stage: string): Change[] => [
  {
    file: `supabase/functions/${folder}/index.ts`,
    text: `import { ${stage} } from '${runtime}';\nimport { serveStage } from '../_millrace/mod.ts';\n\nserveStage(${stage}());\n`,
    from: null,
  },
  { file: `supabase/functions/${folder}/deno.json`, text: denoJson(readManifest(), true), from: null },
];
