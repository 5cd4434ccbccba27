// millrace upgrade: the runtime and the engine of this release in the place of an older one.
import fs from 'node:fs';
import path from 'node:path';
import { applyEdits, modify, parse } from 'jsonc-parser';
import { CommandError } from '../command-error.ts';
import { defineCommand, writingOptions } from '../define-command.ts';
import { stampAll, type Unstamped } from '../migration-stamps.ts';
import type { Change } from '../project/change-set.ts';
import { editedFiles, showEdits } from '../project/edited-files.ts';
import { engineState, migrationTexts } from '../project/engine-level.ts';
import { findProject, migrationsOf, type Project } from '../project/find-project.ts';
import { howToInstall } from '../project/how-to-install.ts';
import { optionalMigrations, optionalOf } from '../project/optional-migrations.ts';
import { installedManifest, isOlder, releaseFault } from '../project/release-fit.ts';
import {
  denoJson,
  engineStep,
  type Manifest,
  readManifest,
  runtimeChanges,
  runtimeFolder,
} from '../project/shipped.ts';
import { snippetChanges } from '../project/snippets.ts';
import { warnDirty, writeChanges } from '../project/write-changes.ts';

export const upgrade = defineCommand({
  usage: `npx millrace upgrade [--to VERSION] [--force] [--dry-run]
  Writes the engine's migrations that the project lacks, each stamped after its newest, those of init --dashboard and --traces
  whose text has changed, the runtime of this release, and the versions that functions pin. Where you edited the runtime, shows what you changed and writes nothing.
  --to VERSION  refuses where this command is of another release, and says how to run that one
  --force       drops what you edited`,
  options: { ...writingOptions, to: { type: 'string' }, force: { type: 'boolean', default: false } },
  run: async ({ values }) => {
    const project = findProject(values.workdir);
    const own = readManifest();
    if (values.to !== undefined && values.to !== own.release) {
      throw new CommandError(
        `This command is of Millrace ${own.release}: ${howToInstall(project.root, values.to)}, then \`npx millrace upgrade\`.`,
      );
    }
    const changes = await upgradeChanges(project, own, values.force);
    warnDirty(project);
    const next = 'look at it, commit it, then npx supabase db push --remote and npx supabase functions deploy.';
    return writeChanges(project, changes, values, next);
  },
});

/**
 * The changes that bring a project to this release. Throws a CommandError where the folder is newer or no migration
 * installs the engine.
 *
 * @param force Overwrites a runtime that the user has edited; without it such a runtime is a CommandError too.
 */
async function upgradeChanges(project: Project, own: Manifest, force: boolean): Promise<Change[]> {
  const before = installedManifest(project);
  if (isOlder(own.release, before.release)) throw new CommandError(releaseFault(project, before, 'upgrade', own) ?? '');
  const edited = editedFiles(project, before);
  if (edited.length > 0 && !force) {
    throw new CommandError(
      `You have edited ${edited.join(', ')} below ${runtimeFolder}, and an upgrade drops what you changed:\n` +
        `${showEdits(project, before, edited)}Move it into your own functions, or run this again with --force.`,
    );
  }
  const now = runtimeChanges(own);
  const gone = Object.keys(before.files)
    .map((file) => `${runtimeFolder}/${file}`)
    .filter((file) => !now.some((change) => change.file === file))
    .map((file) => ({ file, text: null }));
  return [
    ...(await stampAll(migrationsOf(project), [
      ...engineSteps(project, own),
      ...optionalMigrations(project, own, optionalOf(project)),
    ])),
    ...now,
    ...gone,
    { file: 'supabase/functions/millrace/deno.json', text: denoJson(own) },
    ...pinChanges(project, before, own),
    ...snippetChanges(project.root, before),
  ];
}

/** Returns the migrations from the level found to this release's, in their order. */
function engineSteps(project: Project, { level, release }: Manifest): Unstamped[] {
  const { level: found } = engineState(migrationTexts(project));
  if (found === null) {
    throw new CommandError('No migration of this project installs the engine: run `npx millrace init` first.');
  }
  if (found > level) {
    throw new CommandError(
      `This project's migrations have the engine at level ${found}, and Millrace ${release} has level ${level}: install the ` +
        'release that wrote them, or a newer one.',
    );
  }
  const levels = Array.from({ length: level - found }, (_, at) => found + 1 + at);
  return levels.map((number) => ({ name: `millrace_level_${number}.sql`, text: engineStep(number) }));
}

/** Replaces the pins that an earlier release wrote, in every function. A pin of the project's own stays. */
function pinChanges({ root }: Project, before: Manifest, own: Manifest): Change[] {
  const folder = path.join(root, 'supabase', 'functions');
  const [old, now] = [before, own].map((of) => ({ ...of.imports, ...of.modelImports }));
  return fs.readdirSync(folder).flatMap((name) => {
    const file = `supabase/functions/${name}/deno.json`;
    if (name === 'millrace' || !fs.existsSync(path.join(root, file))) return [];
    const text = fs.readFileSync(path.join(root, file), 'utf8');
    const imports: Record<string, string> = parse(text)?.imports ?? {};
    const ours = Object.entries(now ?? {}).filter(([key]) => key in imports && imports[key] === old?.[key]);
    const edited = ours.reduce((json, [key, pin]) => applyEdits(json, modify(json, ['imports', key], pin, {})), text);
    return edited === text ? [] : [{ file, text: edited }];
  });
}
