// The rows of the engine that a database lacks which got another one's schema without its data, such as a branch made in the
// dashboard: settings, cron jobs and definitions. Its migrations count as applied there, so that no push writes them.
import type { CompiledPipeline } from '../../supabase/functions/_millrace/compile/compile-pipeline.ts';
import { querySupabase } from '../project/ask-supabase.ts';
import { migrationTexts, sinceUninstall } from '../project/engine-level.ts';
import type { Project } from '../project/find-project.ts';
import type { Health } from '../project/read-health.ts';
import { limitMigration, limitsIn } from './limit-migration.ts';
import { definitionsIn, pipelineMigration } from './pipeline-migration.ts';
import { childrenFirst } from './pipeline-order.ts';

const ownRows = 'the engine has its own rows';

/** Pipelines that a database has lost, and the statement that writes them with its other rows. */
export interface LostRows {
  pipelines: string[];
  sql: string;
}

/** Returns the pipelines that doctor() finds at their tables alone. */
export function lostPipelines({ findings }: Pick<Health, 'findings'>): string[] {
  const { detail = '' } = findings.find(({ what }) => what === ownRows) ?? {};
  return [...detail.matchAll(/\bpipeline (\w+)/g)].flatMap(([, name]) => name ?? []);
}

/** Compares the findings of doctor() with the migrations. Returns null where no row of the engine is missing. */
export function lostRows(project: Project, health: Pick<Health, 'findings'>): LostRows | null {
  if (!health.findings.some(({ what }) => what === ownRows || what.startsWith('pg_cron job '))) return null;
  const lost = lostPipelines(health);
  const texts = sinceUninstall(migrationTexts(project));
  const defined = definitionsIn(texts);
  const pipelines = [...defined.values()].filter(({ pipeline }) => lost.includes(pipeline));
  return { pipelines: pipelines.map(({ pipeline }) => pipeline), sql: writing(pipelines, defined, limitsIn(texts)) };
}

/** Returns the statement that writes the rows, all of them or none. */
function writing(
  pipelines: CompiledPipeline[],
  defined: Map<string, CompiledPipeline>,
  limits: Map<string, string>,
): string {
  const shared = Object.fromEntries([...limits].map(([name, json]) => [name, JSON.parse(json) as unknown]));
  const texts = [
    'select millrace.set_up();\n',
    ...(pipelines.length > 0 ? [limitMigration(shared, new Map()) ?? ''] : []),
    ...childrenFirst(pipelines).map((pipeline) => pipelineMigration(pipeline, defined)),
  ];
  const calls = texts.join('').replaceAll(/^select millrace\./gm, 'perform millrace.');
  return `do $lost_rows$\nbegin\n${calls}end\n$lost_rows$;\n`;
}

/** Writes the rows by the supabase CLI, which `target` leads to the database. Returns what was written; throws a CommandError. */
export async function writeLostRows({ root }: Project, { pipelines, sql }: LostRows, target: string): Promise<string> {
  await querySupabase(root, target, sql);
  const defined = pipelines.length > 0 ? `, and the definitions of ${pipelines.join(', ')}` : '';
  return `Wrote the settings and cron jobs that were missing${defined}.`;
}
