// Reads how a function is deployed from the project's configuration and its own folder, as the supabase CLI does.
import fs from 'node:fs';
import path from 'node:path';
import { configFile, readConfig } from './project-config.ts';

/** How one function is deployed; its files as absolute paths. */
export interface FunctionConfig {
  /** Whether it is deployed and served at all. */
  enabled: boolean;
  entry: string;
  /** Where its imports are mapped: a deno.json or an import map. Undefined where there is none. */
  importMap: string | undefined;
  /** Files that it may read beside its code, with wildcards. */
  staticFiles: string[];
  /** Whether only callers with a valid token get through to it. */
  verifyJwt: boolean;
}

const ownMaps = ['deno.json', 'deno.jsonc', 'import_map.json'];

/**
 * Reads how the functions in `folder` are deployed: the configuration beside that folder, then what lies in a function's own folder,
 * then the fallback that all functions share. Paths in the configuration are relative to it. Throws when it cannot be read.
 */
export function readFunctionConfigs(folder: string): (name: string) => FunctionConfig {
  const supabase = path.join(folder, '..');
  const { functions: entries = {} } = readConfig(supabase);
  const fromConfig = (given: string) => path.resolve(supabase, given);
  return (name) => {
    const given = (Object.hasOwn(entries, name) && entries[name]) || {};
    const maps = [...ownMaps.map((map) => path.join(folder, name, map)), path.join(folder, 'import_map.json')];
    return {
      enabled: given.enabled ?? true,
      entry: given.entrypoint ? fromConfig(given.entrypoint) : path.join(folder, name, 'index.ts'),
      importMap: given.import_map ? fromConfig(given.import_map) : maps.find((map) => fs.existsSync(map)),
      staticFiles: (given.static_files ?? []).map(fromConfig),
      verifyJwt: given.verify_jwt ?? true,
    };
  };
}

/** Reads the configuration again at each call. While it cannot be read, `complain` gets the reason and the last good version holds. */
export function watchFunctionConfigs(
  folder: string,
  complain: (line: string) => void,
): (name: string) => FunctionConfig {
  const stamp = () => {
    const file = configFile(path.join(folder, '..'));
    const found = file && fs.statSync(file, { throwIfNoEntry: false });
    return { file, version: found && `${file} ${found.mtimeMs} ${found.size}` };
  };
  let read = stamp().version;
  let configOf = readFunctionConfigs(folder);
  return (name) => {
    const { file = '', version } = stamp();
    if (version !== read) {
      read = version;
      try {
        configOf = readFunctionConfigs(folder);
      } catch (error) {
        complain(`${path.basename(file)} is not read, what it said before holds: ${(error as Error).message}`);
      }
    }
    return configOf(name);
  };
}

/** Returns the names of the functions in `folder` that `supabase functions deploy` deploys. */
export function deployedFunctions(folder: string): string[] {
  const configOf = readFunctionConfigs(folder);
  return fs
    .readdirSync(folder)
    .filter((name) => /^[A-Za-z][A-Za-z0-9_-]*$/.test(name))
    .filter((name) => configOf(name).enabled && fs.existsSync(configOf(name).entry))
    .sort();
}
