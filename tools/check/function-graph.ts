// Finds the files and packages of a function, as the platform's bundler does.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { denoBinary } from '../../local/platform/binaries.ts';
import type { FunctionConfig } from '../../local/platform/functions/function-config.ts';
import { projectFolder, runProgram } from './run-program.ts';

/** The files of a function's own code, and the folders of the npm packages that come with it, as absolute paths. */
export interface FunctionGraph {
  files: string[];
  packages: string[];
}

interface DenoModule {
  specifier: string;
  error?: string;
  dependencies?: { specifier: string; code?: { specifier?: string; error?: string } }[];
}

/**
 * Follows what a function imports, types left out, and what its npm packages depend on: edge-runtime bundles the modules of the
 * code alone (`TypeCheckMode::None`), and each package of its npm resolution with all files (`build_npm_vfs` in
 * crates/deno_facade/eszip/vfs.rs of supabase/edge-runtime). Throws what Deno says of an import that it cannot resolve.
 */
export async function functionGraph({
  entry,
  importMap,
}: Pick<FunctionConfig, 'entry' | 'importMap'>): Promise<FunctionGraph> {
  const map = importMap === undefined ? [] : ['--import-map', importMap];
  const args = ['info', '--json', '--no-lock', '--node-modules-dir=manual', ...map, entry];
  const env = { DENO_DIR: path.join(projectFolder, '.cache', 'deno'), DENO_NO_UPDATE_CHECK: '1' };
  const { ok, stdout, output } = await runProgram(denoBinary(), args, env);
  if (!ok) throw new Error(`${entry}: ${output}`);
  const { modules } = JSON.parse(stdout) as { modules: DenoModule[] };
  const bySpecifier = new Map(modules.map((module) => [module.specifier, module]));
  const files = new Set<string>();
  const packages = new Set<string>();
  const follow = (specifier: string) => {
    if (!specifier.startsWith('file:')) return;
    const file = fileURLToPath(specifier);
    const folder = packageFolder(file);
    if (folder) return addPackage(folder, packages);
    if (files.has(file)) return;
    files.add(file);
    const { dependencies = [], error } = bySpecifier.get(specifier) ?? {};
    if (error) throw new Error(`${file}: ${error}`);
    for (const { specifier: named, code } of dependencies) {
      if (code?.error) throw new Error(`${file} imports ${named}: ${code.error}`);
      if (code?.specifier) follow(code.specifier);
    }
  };
  follow(pathToFileURL(fs.realpathSync(entry)).href);
  return { files: [...files].sort(), packages: [...packages].sort() };
}

/** Adds a package and all that it depends on, but for what is optional and not there. */
function addPackage(folder: string, packages: Set<string>): void {
  if (packages.has(folder)) return;
  packages.add(folder);
  const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = readPackage(folder);
  const isOptional = (name: string) => peerDependenciesMeta?.[name]?.optional ?? false;
  const peers = Object.keys(peerDependencies ?? {}).filter((name) => !isOptional(name));
  for (const name of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers]) {
    const found = installedFolder(name, folder);
    if (found) addPackage(found, packages);
    else if (!optionalDependencies?.[name]) throw new Error(`${folder} needs ${name}, which is not installed.`);
  }
}

interface PackageJson {
  name: string;
  version: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
}

/** Reads the package.json in a folder. */
export function readPackage(folder: string): PackageJson {
  return JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
}

/** The folder of the package that a file belongs to, undefined for a file of the project itself. */
function packageFolder(file: string): string | undefined {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0];
}

/** Where the package `name` lies, as seen from the folder of another. */
function installedFolder(name: string, from: string): string | undefined {
  for (let at = from; at !== path.dirname(at); at = path.dirname(at)) {
    const folder = path.join(at, 'node_modules', name);
    if (fs.existsSync(path.join(folder, 'package.json'))) return folder;
  }
  return undefined;
}
