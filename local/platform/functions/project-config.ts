// The configuration of a Supabase project, in whichever form it is.
import fs from 'node:fs';
import path from 'node:path';
import { type ParseError, parse as parseJson, printParseErrorCode } from 'jsonc-parser';
import { parse as parseToml } from 'smol-toml';

/** What the stack asks of it. */
export interface ProjectConfig {
  db?: { seed?: { enabled?: boolean; sql_paths?: string[] }; vault?: Record<string, string> };
  functions?: Record<string, FunctionEntry>;
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

/** The configuration's file in the folder `supabase/`; undefined where there is none. */
export function configFile(supabase: string): string | undefined {
  return names.map((name) => path.join(supabase, name)).find((file) => fs.existsSync(file));
}

/** What the configuration in the folder `supabase/` says. Throws when it cannot be read. */
export function readConfig(supabase: string): ProjectConfig {
  const file = configFile(supabase);
  if (!file) return {};
  // Without the mark that an editor of Windows may have put before it.
  const text = fs.readFileSync(file, 'utf8').replace(/^\ufeff/, '');
  if (file.endsWith('.toml')) return parseToml(text) as ProjectConfig;
  const errors: ParseError[] = [];
  const config = parseJson(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first) {
    const line = text.slice(0, first.offset).split('\n').length;
    throw new Error(`${path.basename(file)} is no JSON at line ${line}: ${printParseErrorCode(first.error)}`);
  }
  return config ?? {};
}
