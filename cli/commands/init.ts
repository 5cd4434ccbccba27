// millrace init: the engine's migration, the runtime, the function millrace and its section of the configuration.
import fs from 'node:fs';
import path from 'node:path';
import { CommandError } from '../command-error.ts';
import { defineCommand, writingOptions } from '../define-command.ts';
import { stampAll, stampBefore, type Unstamped } from '../migration-stamps.ts';
import { type Change, isPart, readText } from '../project/change-set.ts';
import { withFunctionSections } from '../project/config-sections.ts';
import { callsEngine, engineState, migrationTexts, sinceUninstall } from '../project/engine-level.ts';
import { type Example, exampleFiles, exampleNames, readExample } from '../project/examples.ts';
import { findProject, hasDefinitions, migrationsOf, type Project } from '../project/find-project.ts';
import { optionalMigrations, type Wanted } from '../project/optional-migrations.ts';
import { requireRelease } from '../project/release-fit.ts';
import {
  digestOf,
  engineInstall,
  type Manifest,
  millraceFunction,
  readManifest,
  runtimeChanges,
  runtimeFolder,
} from '../project/shipped.ts';
import { snippetChanges } from '../project/snippets.ts';
import { warnTsconfig } from '../project/warn-tsconfig.ts';
import { warnDirty, writeChanges } from '../project/write-changes.ts';

export const init = defineCommand({
  usage: `npx millrace init [--example NAME] [--dashboard] [--traces] [--dry-run]
  Writes the engine's migration, the runtime as source, the function millrace and its section of the configuration.
  Nothing of yours is touched; a second time there is nothing to do.
  --example NAME  an example too, as your own code: ${exampleNames.join(', ')}
  --dashboard     a migration with ten views, millrace_watch, for Supabase's SQL editor, Reports and Grafana
  --traces        a migration by which runs are sent to a collector of OpenTelemetry`,
  options: {
    ...writingOptions,
    example: { type: 'string' },
    dashboard: { type: 'boolean', default: false },
    traces: { type: 'boolean', default: false },
  },
  run: async ({ values }) => {
    const project = findProject(values.workdir);
    const next =
      values.example || hasDefinitions(project)
        ? 'npx millrace sync.'
        : 'npx millrace add PIPELINE STAGE --table YOUR_TABLE, then npx millrace sync.';
    const changes = await initChanges(project, values.example, values);
    warnDirty(project);
    warnTsconfig(project.root);
    return writeChanges(project, changes, values, next);
  },
});

const engineFile = 'millrace.sql';

/**
 * The changes that install Millrace in a project; they change nothing where it is installed. Throws a CommandError
 * where files that are not Millrace's are in the way.
 *
 * @param name The example to add; undefined for none.
 * @param wanted Whether the views of `millrace_watch` are added, and the functions that send traces.
 */
export async function initChanges(project: Project, name: string | undefined, wanted: Wanted = {}): Promise<Change[]> {
  const manifest = readManifest();
  const config = fs.readFileSync(path.join(project.root, project.config), 'utf8');
  const example = name === undefined ? undefined : readExample(name);
  const functions = ['millrace', ...Object.keys(example?.functions ?? {})];
  return [
    ...(await migrationChanges(project, [
      ...engineMigrations(project),
      ...(example ? tablesOf(project, `${name}.sql`, example) : []),
      ...optionalMigrations(project, manifest, wanted),
    ])),
    ...(isInstalled(project) ? [] : snippetChanges(project.root, null)),
    ...runtimeOf(project, manifest),
    ...functionChanges(project, manifest),
    ...(example ? exampleFiles(project, example, manifest) : []),
    { file: project.config, text: withFunctionSections(project.config, config, functions), from: config },
  ];
}

/** Resolves to the missing migrations, stamped after the newest one; the engine's comes before those that call it. */
const migrationChanges = (project: Project, lacking: Unstamped[]): Promise<Change[]> =>
  stampAll(migrationsOf(project), lacking, lacking[0]?.name === engineFile ? stampBeforeCalls(project) : undefined);

/**
 * The stamp of an engine whose own migration somebody has removed: right before the first that calls it. Undefined where none calls
 * it. Throws a CommandError where there is no room.
 */
function stampBeforeCalls(project: Project): string | undefined {
  const names = migrationsOf(project);
  const texts = migrationTexts(project);
  const counting = sinceUninstall(texts);
  const first = counting.findIndex(callsEngine);
  if (first < 0) return undefined;
  const at = texts.length - counting.length + first;
  const [before = '', calls = ''] = [names[at - 1], names[at]];
  const stamp = stampBefore(calls);
  if (`${stamp}_` > before) return stamp;
  throw new CommandError(
    `supabase/migrations/${calls} calls the engine, which no migration installs, and there is no room for one after ${before}: ` +
      'bring back the migration that installed it.',
  );
}

/** Returns the example's tables; none where a migration has them. */
function tablesOf(project: Project, name: string, { tables }: Example): Unstamped[] {
  return migrationTexts(project).includes(tables) ? [] : [{ name, text: tables }];
}

/** Returns the engine's migration; none where the migrations have it with its rows. */
function engineMigrations(project: Project): Unstamped[] {
  const { level, isSetUp } = engineState(migrationTexts(project));
  if (level !== null && isSetUp) return [];
  // `migration squash` keeps the engine's functions and none of its rows.
  if (level !== null) return [{ name: 'millrace_set_up.sql', text: 'select millrace.set_up();\n' }];
  const version = majorVersion(fs.readFileSync(path.join(project.root, project.config), 'utf8'));
  if (version !== undefined && version < 15) {
    throw new CommandError(
      `${project.config} says major_version ${version}, but the engine needs Postgres 15 or newer: upgrade the project.`,
    );
  }
  return [{ name: engineFile, text: engineInstall() }];
}

const majorVersion = (config: string) => {
  const [, version] = /"?major_version"?\s*[=:]\s*(\d+)/.exec(config) ?? [];
  return version === undefined ? undefined : Number(version);
};

const isInstalled = ({ root }: Project) => fs.existsSync(path.join(root, runtimeFolder, 'manifest.json'));

/** Returns the runtime with its manifest. Files that are there and are not ours are refused. */
function runtimeOf(project: Project, manifest: Manifest): Change[] {
  const folder = path.join(project.root, runtimeFolder);
  if (isInstalled(project)) {
    requireRelease(project, 'init');
    return [];
  }
  // Files of an init that was killed are ours: init writes the manifest last.
  const isThere = fs.existsSync(folder);
  const isFolder = isThere && fs.statSync(folder).isDirectory();
  const there = isFolder ? fs.readdirSync(folder, { recursive: true, withFileTypes: true }) : [];
  const isOurs = (file: string) => {
    const digest = manifest.files[path.relative(folder, file).split(path.sep).join('/')];
    return isPart(file) || digest === digestOf(fs.readFileSync(file, 'utf8'));
  };
  if (
    isThere === isFolder &&
    there.every((entry) => !entry.isFile() || isOurs(path.join(entry.parentPath, entry.name)))
  ) {
    return runtimeChanges(manifest);
  }
  throw new CommandError(`${runtimeFolder} is there and is none of ours: move it away, since the runtime lies there.`);
}

/** Returns the function `millrace`. Another one of that name is refused. */
function functionChanges({ root }: Project, manifest: Manifest): Change[] {
  const changes = millraceFunction(manifest);
  const inTheWay = changes.find(({ file, text }) => {
    const there = readText(path.join(root, file));
    return file.endsWith('.ts') && there !== null && digestOf(there) !== digestOf(text);
  });
  if (!inTheWay) return changes;
  throw new CommandError(`${inTheWay.file} is there and is none of ours: give that function another name.`);
}
