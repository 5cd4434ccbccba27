// millrace init: the engine's migration, the runtime, the function millrace and its section of the configuration.
import fs from 'node:fs';
import path from 'node:path';
import { defineCommand, writingOptions } from '../define-command.ts';
import { stampsAfter } from '../migration-stamps.ts';
import type { Change } from '../project/change-set.ts';
import { CommandError } from '../project/command-error.ts';
import { withFunctionSections } from '../project/config-sections.ts';
import { engineState, migrationTexts } from '../project/engine-level.ts';
import { findProject, migrationsOf, type Project } from '../project/find-project.ts';
import { requireRelease } from '../project/release-fit.ts';
import {
  denoJson,
  digestOf,
  engineInstall,
  type Manifest,
  readManifest,
  runtimeChanges,
  runtimeFolder,
} from '../project/shipped.ts';
import { warnDirty, writeChanges } from '../project/write-changes.ts';

export const init = defineCommand({
  usage: `npx millrace init [--dry-run]
  Writes the engine's migration, the runtime as source, the function millrace and its section of the configuration.
  Nothing of yours is touched; a second time there is nothing to do.`,
  options: writingOptions,
  run: async ({ values }) => {
    const project = findProject(values.workdir);
    const next = 'npx millrace add PIPELINE STAGE --table YOUR_TABLE, then npx millrace sync.';
    const changes = await initChanges(project);
    warnDirty(project);
    return writeChanges(project, changes, values, next);
  },
});

const millraceFunction = 'supabase/functions/millrace';

/** What makes a project one of Millrace's; nothing where it is one already. Throws a CommandError where something is in the way. */
async function initChanges(project: Project): Promise<Change[]> {
  const manifest = readManifest();
  const config = fs.readFileSync(path.join(project.root, project.config), 'utf8');
  return [
    ...(await engineChanges(project)),
    ...runtimeOf(project, manifest),
    ...functionChanges(project, manifest),
    { file: project.config, text: withFunctionSections(project.config, config, ['millrace']) },
  ];
}

/** The engine's migration, stamped after the newest; none where the migrations have it with its rows. */
async function engineChanges(project: Project): Promise<Change[]> {
  const names = migrationsOf(project);
  const { level, isSetUp } = engineState(migrationTexts(project));
  if (level !== null && isSetUp) return [];
  if (level !== null) {
    // What `migration squash` leaves has the functions and none of the rows.
    const [stamp] = await stampsAfter(names, 1);
    return [{ file: `supabase/migrations/${stamp}_millrace_set_up.sql`, text: 'select millrace.set_up();\n' }];
  }
  const version = majorVersion(fs.readFileSync(path.join(project.root, project.config), 'utf8'));
  if (version !== undefined && version < 17) {
    throw new CommandError(
      `${project.config} says major_version ${version}, but the engine needs Postgres 17: upgrade the project.`,
    );
  }
  const [stamp] = await stampsAfter(names, 1);
  return [{ file: `supabase/migrations/${stamp}_millrace.sql`, text: engineInstall() }];
}

const majorVersion = (config: string) => {
  const [, version] = /"?major_version"?\s*[=:]\s*(\d+)/.exec(config) ?? [];
  return version === undefined ? undefined : Number(version);
};

/** The runtime with its manifest. Files that are there and are not ours are refused. */
function runtimeOf(project: Project, manifest: Manifest): Change[] {
  const folder = path.join(project.root, runtimeFolder);
  if (fs.existsSync(folder) && !fs.existsSync(path.join(folder, 'manifest.json'))) {
    throw new CommandError(
      `${runtimeFolder} is there and is none of ours: move it away, since the runtime lies there.`,
    );
  }
  if (!fs.existsSync(folder)) return runtimeChanges(manifest);
  requireRelease(project, 'init');
  return [];
}

function functionChanges(project: Project, manifest: Manifest): Change[] {
  const index = `import { serveMillrace } from '../_millrace/serve-millrace.ts';\n\nserveMillrace();\n`;
  const place = path.join(project.root, millraceFunction, 'index.ts');
  if (fs.existsSync(place) && digestOf(fs.readFileSync(place, 'utf8')) !== digestOf(index)) {
    throw new CommandError(
      `${millraceFunction}/index.ts is there and is none of ours: give that function another name.`,
    );
  }
  return [
    { file: `${millraceFunction}/index.ts`, text: index },
    { file: `${millraceFunction}/deno.json`, text: denoJson(manifest) },
  ];
}
