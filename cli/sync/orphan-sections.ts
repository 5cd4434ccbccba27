// Sections of the configuration whose function is gone. `supabase functions deploy` uploads such a function empty, and Supabase then
// updates none.
import fs from 'node:fs';
import path from 'node:path';
import { readFunctionConfigs } from '../../local/platform/functions/function-config.ts';
import { readConfig } from '../../local/platform/functions/project-config.ts';
import type { Change } from '../project/change-set.ts';
import { withoutFunctionSections } from '../project/config-sections.ts';
import { type Project, readConfigText } from '../project/find-project.ts';
import { functionOf } from './pipeline-functions.ts';
import { definitionsIn, functionsIn } from './pipeline-migration.ts';

/** Returns a sentence, with the remedy, for each section of a function that is deployed and has no code. */
export function sectionFaults(project: Project): string[] {
  return orphans(project).map(
    ({ name, entry }) =>
      `${project.config} has a section for function ${name}, whose ${entry} does not exist, so that a deployment uploads it empty ` +
      'and then updates no function: bring the code back, or take the section out, as `npx millrace sync` does with what ' +
      '`npx millrace add` wrote.',
  );
}

/** Takes out the sections that `add` wrote for stages of these migrations and pipelines, and whose functions are gone. */
export function withoutOrphans(project: Project, migrations: string[]): Change[] {
  const pipelines = [...definitionsIn(migrations).keys()];
  const functions = new Set(functionsIn(migrations));
  const isOurs = (name: string) =>
    functions.has(name) || pipelines.some((pipeline) => name.startsWith(functionOf(pipeline, '')));
  const names = orphans(project).flatMap(({ name }) => (isOurs(name) ? [name] : []));
  if (names.length === 0) return [];
  const from = readConfigText(project);
  return [{ file: project.config, text: withoutFunctionSections(project.config, from, names).text, from }];
}

function orphans({ root }: Project): { name: string; entry: string }[] {
  const supabase = path.join(root, 'supabase');
  const configOf = readFunctionConfigs(path.join(supabase, 'functions'));
  return Object.keys(readConfig(supabase).functions ?? {})
    .map((name) => ({ name, ...configOf(name) }))
    .filter(({ enabled, entry }) => enabled && !fs.existsSync(entry))
    .map(({ name, entry }) => ({ name, entry: path.relative(root, entry).split(path.sep).join('/') }));
}
