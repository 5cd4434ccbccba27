// millrace uninstall: a migration that removes the engine, and our files gone.
import fs from 'node:fs';
import path from 'node:path';
import { defineCommand, writingOptions } from '../define-command.ts';
import { stampsAfter } from '../migration-stamps.ts';
import type { Change } from '../project/change-set.ts';
import { withoutFunctionSections } from '../project/config-sections.ts';
import { editedFiles } from '../project/edited-files.ts';
import { engineState, migrationTexts } from '../project/engine-level.ts';
import { findProject, migrationsOf, type Project } from '../project/find-project.ts';
import { installedManifest } from '../project/release-fit.ts';
import { engineUninstall, runtimeFolder } from '../project/shipped.ts';
import { warnDirty, writeChanges } from '../project/write-changes.ts';

const options = {
  ...writingOptions,
  columns: { type: 'boolean', default: false },
  cancel: { type: 'boolean', default: false },
} as const;

export const uninstall = defineCommand({
  usage: `npx millrace uninstall [--columns] [--cancel] [--dry-run]
  Writes a migration that removes the engine. The runtime and the function millrace go, but for files that you have edited;
  definitions and stages stay, as they are yours.
  --columns  also drops the seven columns of each stage from your tables, with what they show
  --cancel   cancels the runs that are live; without it the migration refuses while there are some`,
  options,
  run: async ({ values }) => {
    const project = findProject(values.workdir);
    const kept = editedFiles(project, installedManifest(project)).map((file) => `${runtimeFolder}/${file}`);
    const changes = await uninstallChanges(project, kept, values);
    warnDirty(project);
    const left = kept.filter((file) => fs.existsSync(path.join(project.root, file)));
    const stays = left.length > 0 ? `remove ${left.join(', ')}, which you have edited and which stays; then ` : '';
    const next = `${stays}npx supabase db push --remote, then npx supabase functions delete millrace.`;
    return writeChanges(project, changes, values, next);
  },
});

async function uninstallChanges(
  project: Project,
  kept: string[],
  { columns, cancel }: { columns: boolean; cancel: boolean },
): Promise<Change[]> {
  const config = fs.readFileSync(path.join(project.root, project.config), 'utf8');
  const ours = Object.keys(installedManifest(project).files).map((file) => `${runtimeFolder}/${file}`);
  const gone = [
    ...ours.filter((file) => !kept.includes(file)),
    `${runtimeFolder}/manifest.json`,
    'supabase/functions/millrace/index.ts',
    'supabase/functions/millrace/deno.json',
  ];
  return [
    ...(await removal(project, [
      cancel ? cancelSql : '',
      columns ? withColumns(engineUninstall()) : engineUninstall(),
    ])),
    ...gone.map((file) => ({ file, text: null })),
    { file: project.config, text: withoutFunctionSections(project.config, config, ['millrace']), from: config },
  ];
}

/** The migration that removes the engine; none where no migration installs it. */
async function removal(project: Project, parts: string[]): Promise<Change[]> {
  if (engineState(migrationTexts(project)).level === null) return [];
  const [stamp] = await stampsAfter(migrationsOf(project), 1);
  return [{ file: `supabase/migrations/${stamp}_uninstall_millrace.sql`, text: parts.filter(Boolean).join('\n') }];
}

const cancelSql = `-- The runs that are live, those of children too.
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
