// The configuration of a Supabase project, in whichever form it is.
import fs from 'node:fs';
import path from 'node:path';
import { type ParseError, parse as parseJson, printParseErrorCode } from 'jsonc-parser';
import { parse as parseToml, TomlError } from 'smol-toml';

/** The part of the configuration that the stack and `millrace check` read. */
export interface ProjectConfig {
  api?: { schemas?: string[]; extra_search_path?: string[]; max_rows?: number };
  db?: { major_version?: number; seed?: { enabled?: boolean; sql_paths?: string[] }; vault?: Record<string, string> };
  functions?: Record<string, FunctionEntry>;
  auth?: { external?: Record<string, unknown> };
  experimental?: { orioledb_version?: string };
  /** The name of local_smtp before version 3 of the CLI. */
  inbucket?: unknown;
}

export interface FunctionEntry {
  enabled?: boolean;
  entrypoint?: string;
  import_map?: string;
  static_files?: string[];
  verify_jwt?: boolean;
}

/** The CLI reads JSON before TOML. */
const names = ['config.json', 'config.jsonc', 'config.toml'];

/** Returns the configuration's file in the folder `supabase/`; undefined where there is none. */
export function configFile(supabase: string): string | undefined {
  return names.map((name) => path.join(supabase, name)).find((file) => fs.existsSync(file));
}

/**
 * Reads the configuration in the folder `supabase/`; empty where there is none. Throws an error with line and column
 * where it cannot be parsed.
 */
export function readConfig(supabase: string): ProjectConfig {
  const file = configFile(supabase);
  if (!file) return {};
  // Without the mark that an editor of Windows may have put before it.
  const text = fs.readFileSync(file, 'utf8').replace(/^\ufeff/, '');
  return parseConfig(`supabase/${path.basename(file)}`, text);
}

/**
 * Parses the text of a configuration. Throws an error with line and column where it cannot be parsed.
 *
 * @param file The name of its file, which tells the language and stands in errors.
 */
export function parseConfig(file: string, text: string): ProjectConfig {
  const config: unknown = file.endsWith('.toml') ? readToml(file, text) : readJson(file, text);
  if (config !== null && typeof config === 'object' && !Array.isArray(config)) return config;
  throw new Error(`${file} is no object of settings: correct it.`);
}

function readToml(file: string, text: string): unknown {
  try {
    return parseToml(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw new Error(`${file} is no TOML at line ${error.line}, column ${error.column}: correct it.`);
  }
}

/**
 * Parses JSON with comments; an empty text is an empty object. Throws an error with line and column for any other text.
 *
 * @param file The name of its file, which stands in errors.
 */
export function readJson(file: string, text: string): unknown {
  const errors: ParseError[] = [];
  const said = parseJson(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first) {
    const before = text.slice(0, first.offset).split('\n');
    const at = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
    throw new Error(`${file} is no JSON at ${at} (${printParseErrorCode(first.error)}): correct it.`);
  }
  return said ?? {};
}
