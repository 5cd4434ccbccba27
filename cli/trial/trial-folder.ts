// The project that a trial deploys: a folder of its own, as init, add and sync would leave it.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { compilePipeline } from '../../supabase/functions/_millrace/compile/compile-pipeline.ts';
import type { TrialDeps } from '../commands/trial.ts';
import { stampsAfter } from '../migration-stamps.ts';
import { withFunctionSections } from '../project/config-sections.ts';
import { migrationTexts } from '../project/engine-level.ts';
import { findProject, migrationsOf, readConfigText } from '../project/find-project.ts';
import { denoJson } from '../project/shipped.ts';
import { definitionsIn, pipelineMigration } from '../sync/pipeline-migration.ts';
import { trial } from './functions/_pipelines/trial.ts';
import { trialFiles, trialFunctions } from './trial-files.ts';

/** The names of the trial's migrations, without stamps. The trial removes them by name from the project's history. */
export const trialMigrations = ['trial_tables', 'millrace', 'pipeline_trial', 'trial_measures', 'trial_upgrade'];

/** Makes the folder for a project on this major version of Postgres. Resolves to its path. */
export async function makeTrialFolder(major: number, { initChanges, manifest }: TrialDeps): Promise<string> {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-trial-'));
  const files = trialFiles();
  write(root, { 'supabase/config.toml': `project_id = "millrace-trial"\n\n[db]\nmajor_version = ${major}\n` });
  // Before the engine's, so that they note which extensions the project has without it.
  await addMigration(root, 'trial_tables', files['tables.sql'] ?? '');
  const engine = await initChanges(findProject(root), undefined);
  write(root, Object.fromEntries(engine.map(({ file, text }) => [file, text ?? ''])));
  write(root, {
    ...Object.fromEntries(
      Object.entries(files)
        .filter(([file]) => file.startsWith('functions/'))
        .map(([file, text]) => [`supabase/${file}`, text]),
    ),
    ...Object.fromEntries(
      trialFunctions.map((name) => [
        `supabase/functions/${name}/deno.json`,
        denoJson(manifest, name === 'trial-judge'),
      ]),
    ),
    'supabase/config.toml': withFunctionSections(
      'supabase/config.toml',
      readConfigText(findProject(root)),
      trialFunctions,
    ),
  });
  await addMigration(root, 'pipeline_trial', pipelineMigration(compilePipeline(trial), new Map()));
  await addMigration(root, 'trial_measures', files['measures.sql'] ?? '');
  return root;
}

/** Changes what an upgrade changes: the definition, by a migration, and the code of the function trial-read. */
export async function changeTrial(root: string): Promise<void> {
  const before = definitionsIn(migrationTexts(findProject(root)));
  const { read, ...others } = trial.input.stages;
  if (!read) throw new Error('The pipeline trial has no stage read: this release is incomplete. Install it again.');
  const input = { ...trial.input, stages: { read: { ...read, timeoutSeconds: 11 }, ...others } };
  await addMigration(
    root,
    'trial_upgrade',
    pipelineMigration(compilePipeline({ input: input as typeof trial.input }), before),
  );
  const handler = path.join(root, 'supabase/functions/trial-read/handler.ts');
  fs.writeFileSync(handler, upgraded(fs.readFileSync(handler, 'utf8')));
}

/** Returns the handler's next version, which says so in its result. */
function upgraded(handler: string): string {
  const changed = handler.replace('text: await answer.text()', "text: (await answer.text()).concat(' Upgraded.')");
  if (changed === handler)
    throw new Error('The function trial-read has no text to change: this release is incomplete. Install it again.');
  return changed;
}

async function addMigration(root: string, name: string, text: string): Promise<void> {
  const [stamp] = await stampsAfter(migrationsOf({ root, config: '' }), 1);
  write(root, { [`supabase/migrations/${stamp}_${name}.sql`]: text });
}

function write(root: string, files: Record<string, string>): void {
  for (const [file, text] of Object.entries(files)) {
    const place = path.join(root, file);
    fs.mkdirSync(path.dirname(place), { recursive: true });
    fs.writeFileSync(place, text);
  }
}
