// What supabase/config.toml and a function's own folder say of it, read by the rules of the supabase CLI.
import fs from 'node:fs';
import path from 'node:path';
import { parse } from 'smol-toml';

/** How one function is deployed; its files as absolute paths. */
export interface FunctionConfig {
  entry: string;
  /** Where its imports are mapped: a deno.json or an import map. Undefined where there is none. */
  importMap: string | undefined;
  /** Whether only callers with a valid token get through to it. */
  verifyJwt: boolean;
}

interface ConfigEntry {
  entrypoint?: string;
  import_map?: string;
  verify_jwt?: boolean;
}

const ownMaps = ['deno.json', 'deno.jsonc', 'import_map.json'];

/**
 * Reads how the functions in `folder` are deployed: config.toml beside that folder, then what lies in a function's own folder,
 * then the fallback that all functions share. Paths in config.toml are relative to it. Throws when it is no TOML.
 */
export function readFunctionConfigs(folder: string): (name: string) => FunctionConfig {
  const file = path.join(folder, '..', 'config.toml');
  const config = fs.existsSync(file) ? parse(fs.readFileSync(file, 'utf8')) : {};
  const entries = (config.functions ?? {}) as Record<string, ConfigEntry>;
  const fromConfig = (given: string) => path.resolve(folder, '..', given);
  return (name) => {
    const given = Object.hasOwn(entries, name) ? (entries[name] as ConfigEntry) : {};
    const maps = [...ownMaps.map((map) => path.join(folder, name, map)), path.join(folder, 'import_map.json')];
    return {
      entry: given.entrypoint ? fromConfig(given.entrypoint) : path.join(folder, name, 'index.ts'),
      importMap: given.import_map ? fromConfig(given.import_map) : maps.find((map) => fs.existsSync(map)),
      verifyJwt: given.verify_jwt ?? true,
    };
  };
}

/** The same, reading config.toml at each call. While it is no TOML, `complain` hears why and the last good version holds. */
export function watchFunctionConfigs(
  folder: string,
  complain: (line: string) => void,
): (name: string) => FunctionConfig {
  const file = path.join(folder, '..', 'config.toml');
  const stamp = () => {
    const found = fs.statSync(file, { throwIfNoEntry: false });
    return found && `${found.mtimeMs} ${found.size}`;
  };
  let read = stamp();
  let configOf = readFunctionConfigs(folder);
  return (name) => {
    const now = stamp();
    if (now !== read) {
      read = now;
      try {
        configOf = readFunctionConfigs(folder);
      } catch (error) {
        complain(`config.toml is not read, what it said before holds: ${(error as Error).message}`);
      }
    }
    return configOf(name);
  };
}

/** The names of the functions in `folder` that `supabase functions deploy` deploys. */
export function deployedFunctions(folder: string): string[] {
  return fs
    .readdirSync(folder)
    .filter((name) => /^[A-Za-z][A-Za-z0-9_-]*$/.test(name) && fs.existsSync(path.join(folder, name, 'index.ts')))
    .sort();
}
