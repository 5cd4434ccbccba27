// millrace uninstall: a migration that removes the engine, and our files gone.
import fs from 'node:fs';
import path from 'node:path';
import { findRunningStack, pushCommand } from '../../local/platform/running-stack.ts';
import { defineCommand, writingOptions } from '../define-command.ts';
import { stampsAfter } from '../migration-stamps.ts';
import { type Change, readText } from '../project/change-set.ts';
import { withoutFunctionSections } from '../project/config-sections.ts';
import { editedFiles } from '../project/edited-files.ts';
import { engineState, migrationTexts } from '../project/engine-level.ts';
import { findProject, hasDefinitions, migrationsOf, type Project, readConfigText } from '../project/find-project.ts';
import { installedManifest } from '../project/release-fit.ts';
import { digestOf, engineUninstall, millraceFunction, runtimeFolder } from '../project/shipped.ts';
import { uneditedSnippets } from '../project/snippets.ts';
import { warnDirty, writeChanges } from '../project/write-changes.ts';

const options = {
  ...writingOptions,
  columns: { type: 'boolean', default: false },
  cancel: { type: 'boolean', default: false },
} as const;

export const uninstall = defineCommand({
  usage: `npx millrace uninstall [--columns] [--cancel] [--dry-run]
  Writes a migration that removes the engine. The runtime and the function millrace go, but for files that you have edited;
  definitions and stages stay, as they are yours. The migration is pushed first: until it has gone through, nothing is deployed.
  --columns  also drops the seven columns of each stage from your tables, with what they show
  --cancel   cancels the runs that are live; without it the migration refuses while there are some
  Once more with other options, it writes its migration anew, as long as that is the newest.`,
  options,
  run: async ({ values }) => {
    const project = findProject(values.workdir);
    const anew = otherRemoval(project, values);
    if (anew) return writeChanges(project, [anew], values, `npx supabase db push --remote.${whileLive(values)}`);
    const { changes, kept } = await uninstallChanges(project, values);
    warnDirty(project);
    const stays = kept.length > 0 ? `remove what stays, since you have edited it: ${kept.join(', ')}; then ` : '';
    const left = hasDefinitions(project)
      ? ' What you have in _pipelines, its stages with their tests and sections import what is gone: delete them too, ' +
        'or have it back by npx millrace init.'
      : '';
    const stack = findRunningStack(project.root);
    const here = stack ? `${pushCommand(stack)} for the stack that runs here; ` : '';
    const push =
      `${here}npx supabase db push --remote, and once that has gone through npx supabase functions delete millrace. Until then deploy ` +
      `no functions: the database still wakes those that are there.${whileLive(values)}`;
    const next = `${stays}${push}${left}`;
    return writeChanges(project, changes, values, next);
  },
});

/** Returns the sentence that says what the push does while runs are live; empty with --cancel. */
const whileLive = ({ cancel }: UninstallOptions) =>
  cancel
    ? ''
    : ' The push is refused while runs are live: npx millrace uninstall --cancel writes it anew, so that it cancels them.';

interface UninstallOptions {
  columns: boolean;
  cancel: boolean;
}

/**
 * The changes that remove our files and the engine. `kept`: files and sections that the user has edited, which stay.
 */
async function uninstallChanges(
  project: Project,
  options: UninstallOptions,
): Promise<{ changes: Change[]; kept: string[] }> {
  const manifest = installedManifest(project);
  const there = (file: string) => readText(path.join(project.root, file));
  const edited = [
    ...editedFiles(project, manifest).map((file) => `${runtimeFolder}/${file}`),
    ...millraceFunction(manifest)
      .filter(({ file, text }) => digestOf(there(file) ?? text) !== digestOf(text))
      .map(({ file }) => file),
  ];
  const ours = [
    ...Object.keys(manifest.files).map((file) => `${runtimeFolder}/${file}`),
    `${runtimeFolder}/manifest.json`,
    ...millraceFunction(manifest).map(({ file }) => file),
    ...uneditedSnippets(project.root, manifest),
  ];
  const config = readConfigText(project);
  const section = withoutFunctionSections(project.config, config, ['millrace']);
  return {
    changes: [
      ...(await removal(project, options)),
      ...ours.filter((file) => !edited.includes(file)).map((file) => ({ file, text: null })),
      { file: project.config, text: section.text, from: config },
    ],
    kept: [
      ...edited.filter((file) => there(file) !== null),
      ...section.kept.map((name) => `the section of function ${name} in ${project.config}`),
    ],
  };
}

/** Resolves to the migration that removes the engine; none where no migration installs it. */
async function removal(project: Project, options: UninstallOptions): Promise<Change[]> {
  if (engineState(migrationTexts(project)).level === null) return [];
  const [stamp] = await stampsAfter(migrationsOf(project), 1);
  return [{ file: `supabase/migrations/${stamp}_${ending}`, text: removalSql(options) }];
}

const ending = 'uninstall_millrace.sql';

/** Returns the newest migration, if it is an uninstall, with the text for the present options. */
function otherRemoval(project: Project, options: UninstallOptions): Change | undefined {
  const { root } = project;
  if (fs.existsSync(path.join(root, runtimeFolder, 'manifest.json'))) return undefined;
  const last = migrationsOf(project).at(-1);
  if (!last?.endsWith(`_${ending}`)) return undefined;
  const file = `supabase/migrations/${last}`;
  return { file, text: removalSql(options), from: readText(path.join(root, file)) };
}

const removalSql = ({ columns, cancel }: UninstallOptions) =>
  [cancel ? cancelSql : refuseSql, columns ? withColumns(engineUninstall()) : engineUninstall()]
    .filter(Boolean)
    .join('\n');

/** Refuses in a statement of its own: the supabase CLI prints a failed statement whole, and the engine's removal has 700 lines. */
const refuseSql = `-- Refuses while runs are live.
do $live$
declare
  v_live bigint;
begin
  if to_regclass('millrace.runs') is null then
    return;
  end if;
  select count(*) into v_live from millrace.runs r where r.status = 'running';
  if v_live > 0 then
    raise exception 'runs are live: %. Nothing was removed. End them, or run npx millrace uninstall --cancel and push '
      'again', v_live;
  end if;
end
$live$;
`;

/** Cancels the live runs: one statement, as is `engineUninstall()`. */
export const cancelSql = `-- The runs that are live, those of children too.
select millrace.cancel(r.id)
from millrace.runs r
where r.status = 'running';
`;

/** The columns are noted while the engine knows them, and dropped when its triggers have gone. */
const withColumns = (sql: string) => `create temporary table millrace_stage_columns as
select distinct p.entity_table as entity, c.name
from millrace.pipelines p
join millrace.stages s on s.pipeline_id = p.id
cross join lateral unnest(millrace.stage_columns(s.name)) c(name)
where p.projection = 'columns';

${sql}
do $columns$
declare
  v_column record;
begin
  for v_column in
    select c.entity::oid::regclass as entity, c.name
    from millrace_stage_columns c
    where exists (select from pg_class r where r.oid = c.entity::oid)
  loop
    execute format('alter table %s drop column if exists %I', v_column.entity, v_column.name);
  end loop;
end
$columns$;
drop table millrace_stage_columns;
`;
