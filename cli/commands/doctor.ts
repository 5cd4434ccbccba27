// millrace doctor: what is amiss in the database, each with its remedy, and whether database, folder and command are of one release.
import fs from 'node:fs';
import path from 'node:path';
import { CommandError } from '../command-error.ts';
import { defineCommand, remoteOption } from '../define-command.ts';
import { findTarget, targetAt } from '../operate/find-target.ts';
import { migrationTexts, sinceUninstall } from '../project/engine-level.ts';
import { findProject, hasDefinitions, type Project } from '../project/find-project.ts';
import { faultLines, type Health, readHealth } from '../project/read-health.ts';
import { databaseFault, releaseFault } from '../project/release-fit.ts';
import { readManifest, runtimeFolder } from '../project/shipped.ts';
import { lostPipelines } from '../sync/lost-rows.ts';
import { definitionsIn } from '../sync/pipeline-migration.ts';
import { missingMigrations } from './sync.ts';

export const doctor = defineCommand({
  usage: `npx millrace doctor [--remote[=REF]]
  Shows problems in the database, with remedies; whether database, folder and this command are of one release, and whether the
  database has the folder's definitions.
  Asks the local stack, or the project at SUPABASE_URL with SUPABASE_SECRET_KEY.
  --remote[=REF]  the project that the folder is linked to, or the one of this reference, branch or URL`,
  options: remoteOption,
  run: async ({ values }) => {
    const { url, headers } = await findTarget({ ...values, revealsKey: true });
    const health = await readHealth(url, headers);
    const project = findProject(values.workdir);
    const folder = path.join(project.root, runtimeFolder);
    const isThere = fs.existsSync(path.join(folder, 'manifest.json'));
    const manifest = isThere ? readManifest(folder) : readManifest();
    const target = targetAt(url, project.root, values.remote);
    const push = `npx supabase db push ${target}`.trim();
    const faults = [releaseFault(project, manifest, 'doctor'), databaseFault(project, health, manifest, push)];
    const behind = await definitionsBehind(project, health, push);
    const lines = [
      ...faults.filter((fault) => fault !== null),
      ...behind,
      ...faultLines(health, `npx supabase db query ${target}`.trim()),
    ];
    if (lines.length > 0) throw new CommandError(lines.join('\n'));
    return values.json ? JSON.stringify({ ok: true }) : 'All is well.';
  },
});

/**
 * Definitions of the folder that have no migration yet, and pipelines of its migrations that the database lacks or has
 * in another version.
 *
 * @param push The command that applies the migrations.
 */
async function definitionsBehind(project: Project, health: Health, push: string): Promise<string[]> {
  const { definitions } = health;
  if (!hasDefinitions(project)) return [];
  const unwritten = await missingMigrations(project, true, () => {}).then(
    () => [],
    (error: Error) => [error.message],
  );
  const migrated = [...definitionsIn(sinceUninstall(migrationTexts(project))).values()];
  // doctor() names the pipelines that a push would not restore.
  const lost = lostPipelines(health);
  const others = migrated.filter(
    ({ pipeline, digest }) => definitions[pipeline] !== digest && !lost.includes(pipeline),
  );
  const remedy = `run \`${push}\`.`;
  return [
    ...unwritten,
    ...others.map(({ pipeline }) =>
      definitions[pipeline]
        ? `The database defines pipeline ${pipeline} otherwise than the migrations of this folder: ${remedy}`
        : `The database does not have pipeline ${pipeline}, which the migrations of this folder define: ${remedy}`,
    ),
  ];
}
