// The settings of functions and services for a stack that a person starts: .env, and the environment before it.
import fs from 'node:fs';
import path from 'node:path';
import { parseEnv } from 'node:util';

const projectFolder = path.join(import.meta.dirname, '..');
/** Settings of the local services, which a deployment does not have. */
const localNames = ['SCRAPER_ALLOW_HOSTS', 'OCR_ALLOW_HOSTS', 'DEEPGRAM_ALLOW_HOSTS'];

/**
 * The settings in .env, overruled by environment variables of the names that .env.example lists and by
 * SCRAPER_ALLOW_HOSTS, OCR_ALLOW_HOSTS and DEEPGRAM_ALLOW_HOSTS. Empty ones count as unset.
 */
export function readSettings(environment: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const file = path.join(projectFolder, '.env');
  const settings: Record<string, string | undefined> = fs.existsSync(file)
    ? { ...parseEnv(fs.readFileSync(file, 'utf8')) }
    : {};
  for (const name of [...settingNames(), ...localNames]) if (environment[name]) settings[name] = environment[name];
  return Object.fromEntries(Object.entries(settings).filter((entry): entry is [string, string] => Boolean(entry[1])));
}

function settingNames(): string[] {
  const example = path.join(projectFolder, '.env.example');
  if (!fs.existsSync(example)) return [];
  return [...fs.readFileSync(example, 'utf8').matchAll(/^#?\s*([A-Z][A-Z0-9_]+)=/gm)].map(
    (match) => match[1] as string,
  );
}
