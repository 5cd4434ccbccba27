import fs from 'node:fs';
import { parse } from 'smol-toml';

/** Reads from supabase/config.toml which functions take only callers with a valid token (the default). */
export function readVerifyJwt(configFile: string): (name: string) => boolean {
  const config = fs.existsSync(configFile) ? parse(fs.readFileSync(configFile, 'utf8')) : {};
  const functions = (config.functions ?? {}) as Record<string, { verify_jwt?: boolean }>;
  return (name) => functions[name]?.verify_jwt ?? true;
}
