// Finds the files and packages of a function, as the platform's bundler does.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { denoEnvironment, type PackageSource, packageFlags } from '../../local/platform/functions/deno-command.ts';
import type { FunctionConfig } from '../../local/platform/functions/function-config.ts';
import { aboveFolder } from '../../local/platform/places.ts';

/** The files of a function's own code, and the folders of the npm packages that come with it, as absolute paths. */
export interface FunctionGraph {
  files: string[];
  packages: string[];
}

/** A function, and what is to be asked about it. */
export interface Measured extends Pick<FunctionConfig, 'entry' | 'importMap'> {
  /** The Deno program. */
  deno: string;
  /** Where its packages lie: in the node_modules above it, or in the cache of Deno. */
  packages: PackageSource;
}

interface DenoModule {
  specifier: string;
  error?: string;
  /** Where the text of a module from elsewhere lies. */
  local?: string;
  npmPackage?: string;
  dependencies?: { specifier: string; code?: { specifier?: string; error?: string } }[];
}

interface DenoInfo {
  modules: DenoModule[];
  redirects: Record<string, string>;
  /** The packages in Deno's cache, each by its name and version. */
  npmPackages: Record<string, { localPath: string; dependencies: string[] }>;
}

/** An address without a server, so that Deno reports what it lacks and fetches nothing. */
const nowhere = 'http://127.0.0.1:9';
const offline = { HTTP_PROXY: nowhere, HTTPS_PROXY: nowhere, NO_PROXY: '', no_proxy: '' };

/**
 * Follows what a function imports, types left out, and what its npm packages depend on: edge-runtime bundles the modules of the
 * code alone (`TypeCheckMode::None`), and each package of its npm resolution with all files (`build_npm_vfs` in
 * crates/deno_facade/eszip/vfs.rs of supabase/edge-runtime). Fetches nothing. Throws what Deno says of an import that it cannot
 * resolve, or that lies nowhere on this machine.
 */
export async function functionGraph({ entry, importMap, deno, packages: source }: Measured): Promise<FunctionGraph> {
  const { modules, redirects, npmPackages } = await denoInfo(deno, source, importMap, entry);
  const bySpecifier = new Map(modules.map((module) => [module.specifier, module]));
  const files = new Set<string>();
  const packages = new Set<string>();
  const follow = (given: string): void => {
    const specifier = redirects[given] ?? given;
    const { npmPackage, local, error, dependencies = [] } = bySpecifier.get(specifier) ?? {};
    const file = specifier.startsWith('file:') ? fileURLToPath(specifier) : local;
    if (error) throw new Error(`${file ?? specifier}: ${error}`);
    const folder = packageFolder(file ?? '');
    if (npmPackage) addCached(npmPackage, npmPackages, packages);
    else if (folder) addInstalled(folder, packages);
    else if (file && !files.has(file)) {
      files.add(file);
      for (const { specifier: named, code } of dependencies) {
        if (code?.error) throw new Error(`${file} imports ${named}: ${code.error}`);
        if (code?.specifier) follow(code.specifier);
      }
    }
  };
  follow(pathToFileURL(fs.realpathSync(entry)).href);
  return { files: [...files].sort(), packages: [...packages].sort() };
}

async function denoInfo(
  deno: string,
  source: PackageSource,
  map: string | undefined,
  entry: string,
): Promise<DenoInfo> {
  const args = ['info', '--json', ...packageFlags(source, map), entry];
  const env = { PATH: process.env.PATH, ...denoEnvironment(source), ...offline };
  const cwd = source === 'repository' ? aboveFolder : path.dirname(entry);
  const options = { cwd, env, maxBuffer: 64 * 1024 * 1024 };
  const { stdout } = await promisify(execFile)(deno, args, options).catch((error: Error & { stderr?: string }) => {
    throw new Error(`${entry}: ${(error.stderr || error.message).trim()}`);
  });
  return JSON.parse(stdout);
}

/** Adds a package of Deno's cache and all that it depends on. */
function addCached(name: string, known: DenoInfo['npmPackages'], packages: Set<string>): void {
  const { localPath, dependencies = [] } = known[name] ?? {};
  if (!localPath || !fs.existsSync(localPath)) throw new Error(`${name} is not in the cache of Deno.`);
  if (packages.has(localPath)) return;
  packages.add(localPath);
  for (const dependency of dependencies) addCached(dependency, known, packages);
}

/** Adds an installed package and all that it depends on, but for what is optional and not there. */
function addInstalled(folder: string, packages: Set<string>): void {
  if (packages.has(folder)) return;
  packages.add(folder);
  const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = readPackage(folder);
  const isOptional = (name: string) => peerDependenciesMeta?.[name]?.optional ?? false;
  const peers = Object.keys(peerDependencies ?? {}).filter((name) => !isOptional(name));
  for (const name of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers]) {
    const found = installedFolder(name, folder);
    if (found) addInstalled(found, packages);
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

/** Returns the folder of the package that a file belongs to, undefined for a file of the project itself. */
function packageFolder(file: string): string | undefined {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0];
}

/** Returns where the package `name` lies, as seen from the folder of another. */
function installedFolder(name: string, from: string): string | undefined {
  for (let at = from; at !== path.dirname(at); at = path.dirname(at)) {
    const folder = path.join(at, 'node_modules', name);
    if (fs.existsSync(path.join(folder, 'package.json'))) return folder;
  }
  return undefined;
}
