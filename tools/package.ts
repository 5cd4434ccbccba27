// Runs before `npm pack`. Bundles the commands to JavaScript, and writes a manifest of the runtime that goes with them.
import fs from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';
import {
  type Manifest,
  modelPackage,
  packedRuntime,
  runtimeFiles,
  runtimeFolder,
  runtimePackages,
} from '../cli/project/shipped.ts';
import { snippetDigests } from '../cli/project/snippets.ts';
import { CONTRACT } from '../supabase/functions/_millrace/engine/platform.ts';
import { installSql, uninstallSql } from './engine/build.ts';
import { buildMigration } from './engine/migration.ts';
import { frozenReleases, lastRelease, nextTarget, readProject } from './engine/releases.ts';
import { writeBuilt } from './engine/write-built.ts';
import { readExamples } from './examples.ts';
import { buildPages } from './pages/build-pages.ts';
import { compressed, packPage } from './pages/pack-page.ts';

const root = path.join(import.meta.dirname, '..');
const dist = path.join(root, 'dist');

/** Packages that npm installs beside the bundle: a project's definitions are bundled with their files. */
const external = ['esbuild', ...runtimePackages];

const project = readProject(root);
const target = nextTarget(project) ?? lastRelease(project.engine);
if (!target) throw new Error('The engine is no release and becomes none.');

function manifest(level: number): Omit<Manifest, 'files'> {
  const { dependencies } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
  const imports = (name: string) => [name, `npm:${name}@${dependencies[name]}`];
  return {
    release: project.version,
    level,
    contract: CONTRACT,
    imports: Object.fromEntries(runtimePackages.map(imports)),
    modelImports: Object.fromEntries(
      Object.entries(functionImports()).filter(([key]) => key.replace(/\/$/, '') === modelPackage),
    ),
    snippets: snippetDigests(root),
  };
}

/** Returns the import map of the examples' functions. */
function functionImports(): Record<string, string> {
  const map = path.join(root, 'supabase', 'functions', 'deno.json');
  return JSON.parse(fs.readFileSync(map, 'utf8')).imports;
}

await writeBuilt(root);
fs.rmSync(dist, { recursive: true, force: true });
await build({
  entryPoints: [path.join(root, 'cli', 'millrace.ts')],
  outdir: dist,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  // No command pays for what others import, and the SDK for assistants takes half the room.
  splitting: true,
  minify: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  mainFields: ['module', 'main'],
  external,
  banner: {
    js: "#!/usr/bin/env node\nimport { createRequire as requireFrom } from 'node:module';\nconst require = requireFrom(import.meta.url);",
  },
});
await buildPages(root);
packPage(root, dist);
fs.writeFileSync(path.join(dist, 'manifest.json'), `${JSON.stringify(manifest(target.level), null, 2)}\n`);
const runtime = runtimeFiles(path.join(root, runtimeFolder));
fs.writeFileSync(path.join(root, packedRuntime), compressed(JSON.stringify(runtime)));
// All examples are in one file, since they share much.
fs.writeFileSync(path.join(dist, 'examples.json.br'), compressed(JSON.stringify(readExamples(root))));

/** Writes a text of the engine packed: unpacked, these texts would be half of the package on disk. */
function writeEngine(name: string, text: string): void {
  fs.mkdirSync(path.join(dist, 'engine'), { recursive: true });
  fs.writeFileSync(path.join(dist, 'engine', `${name}.sql.br`), compressed(text));
}

writeEngine('install', await installSql(project.engine, { ...target, from: null }));
writeEngine('uninstall', await uninstallSql(project.engine));
writeEngine('adopt', fs.readFileSync(path.join(root, 'cli', 'adopt', 'adopt.sql'), 'utf8'));
// Each level after the first is reached by a migration: those that are frozen, and the one that is built.
for (const { level, migration } of frozenReleases(project.engine).slice(1)) {
  writeEngine(`step-${level}`, fs.readFileSync(path.join(project.migrations, migration), 'utf8'));
}
const unreleased = target.level > 1 ? await buildMigration(project) : null;
if (unreleased) writeEngine(`step-${target.level}`, unreleased.text);
