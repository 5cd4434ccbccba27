// Where the Supabase project is that a command is about.
import fs from 'node:fs';
import path from 'node:path';
import { CommandError } from '../command-error.ts';

const configs = ['config.json', 'config.jsonc', 'config.toml'];

/** A Supabase project. */
export interface Project {
  /** The folder that holds `supabase/`. */
  root: string;
  /** Its configuration below the root, such as `supabase/config.toml`. */
  config: string;
}

/**
 * Looks for `supabase/` with a configuration in `start` and in the folders above it. Throws a CommandError that says where it
 * looked.
 */
export function findProject(start: string): Project {
  for (let folder = path.resolve(start); ; folder = path.dirname(folder)) {
    const found = configs.filter((name) => fs.existsSync(path.join(folder, 'supabase', name)));
    const json = found.filter((name) => name !== 'config.toml');
    if (json.length > 1)
      throw new CommandError(`There are ${json.join(' and ')} in ${folder}/supabase: keep one of them.`);
    // The CLI reads JSON before TOML.
    if (found[0]) return { root: folder, config: path.posix.join('supabase', found[0]) };
    if (path.dirname(folder) === folder) break;
  }
  throw new CommandError(
    `There is no supabase/config.toml, config.jsonc or config.json in ${path.resolve(start)} or above it: ` +
      'run `npx supabase init`, or name the folder with --workdir.',
  );
}

/** Returns the names of the project's migrations, in their order. */
export function migrationsOf({ root }: Project): string[] {
  const folder = path.join(root, 'supabase', 'migrations');
  if (!fs.existsSync(folder)) return [];
  return fs
    .readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort();
}

/** Returns whether the project has definitions of pipelines. */
export function hasDefinitions({ root }: Project): boolean {
  const folder = path.join(root, 'supabase', 'functions', '_pipelines');
  return fs.existsSync(folder) && fs.statSync(folder).isDirectory();
}

/** Returns the text of the project's configuration. */
export const readConfigText = ({ root, config }: Project) => fs.readFileSync(path.join(root, config), 'utf8');
