// The settings of functions and services for a stack that a person starts: .env, and the environment before it.
import fs from 'node:fs';
import path from 'node:path';
import { diffChars } from 'diff';
import { z } from 'zod';
import { modelSettings } from '../../supabase/functions/_millrace/model/model-settings.ts';
import {
  httpUrl,
  type SettingsGroup,
  settingsFaults,
  webhookSettings,
  workerSettings,
} from '../../supabase/functions/_millrace/settings.ts';
import { readEnvFile } from './follow-settings.ts';

const projectFolder = path.join(import.meta.dirname, '..', '..');
/** The settings that a contributor writes for the stacks of the repository. */
export const settingsFile = path.join(projectFolder, '.env');
/** Settings of the local services, which a deployment does not have. */
const localNames = [
  'SCRAPER_ALLOW_HOSTS',
  'SCRAPER_BROWSER',
  'CHROMIUM_PATH',
  'OCR_ALLOW_HOSTS',
  'DEEPGRAM_ALLOW_HOSTS',
  'SOURCES_FOLDER',
];

/** How many letters a name may differ from a setting's: two swapped, or one forgotten and one too many. */
const nearestChanges = 2;

/**
 * The settings in .env, overruled by environment variables of the names that .env.example lists and by those of the local
 * services. Empty ones count as unset. Throws an error that names each wrong setting of the workers, the callbacks or the
 * model, and each address that is none: functions would stumble over it, one retry after the other.
 */
export function readSettings(environment: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const settings: Record<string, string | undefined> = { ...readEnvFile(settingsFile) };
  for (const name of knownNames()) if (environment[name]) settings[name] = environment[name];
  const given = Object.fromEntries(
    Object.entries(settings).filter((entry): entry is [string, string] => Boolean(entry[1])),
  );
  // The stack makes a secret of its own where none is set.
  const callbacks = given.WEBHOOK_SECRET ? [webhookSettings] : [];
  const groups = [workerSettings, ...callbacks, modelGiven(given), addresses(given)];
  const faults = settingsFaults(groups, given);
  if (faults.length > 0) throw new Error(faults.join('\n'));
  return given;
}

/** Returns the schema of those settings of the model that are given: the stack supplies the others. */
function modelGiven(given: Record<string, string>): SettingsGroup {
  return z.object(Object.fromEntries(Object.entries(modelSettings.shape).filter(([name]) => name in given)));
}

/** Returns the settings of services that say where they are, whichever services those are. */
function addresses(given: Record<string, string>): SettingsGroup {
  const others = { ...workerSettings.shape, ...modelSettings.shape };
  const names = Object.keys(given).filter((name) => name.endsWith('_URL') && !(name in others));
  const url = httpUrl.describe('write it in full, such as https://service.example.com, or remove it');
  return z.object(Object.fromEntries(names.map((name) => [name, url])));
}

/** A sentence for each name, in .env or the environment, that is nearly that of a setting and so probably meant for it. */
export function settingWarnings(environment: NodeJS.ProcessEnv = process.env): string[] {
  const known = knownNames();
  const given = Object.keys({ ...readEnvFile(settingsFile), ...environment }).filter((name) => !known.includes(name));
  return given.flatMap((name) => {
    const meant = known.find((setting) => isNear(name, setting));
    return meant ? [`${name} is no setting, and nothing reads it: did you mean ${meant}?`] : [];
  });
}

function isNear(name: string, setting: string): boolean {
  if (Math.abs(name.length - setting.length) > nearestChanges) return false;
  const changes = diffChars(name, setting).filter(({ added, removed }) => added || removed);
  const letters = changes.reduce((sum, { value }) => sum + value.length, 0);
  return letters <= nearestChanges;
}

function knownNames(): string[] {
  return [...settingNames(), ...localNames];
}

function settingNames(): string[] {
  const example = path.join(projectFolder, '.env.example');
  if (!fs.existsSync(example)) return [];
  return [...fs.readFileSync(example, 'utf8').matchAll(/^#?\s*([A-Z][A-Z0-9_]+)=/gm)].map(
    (match) => match[1] as string,
  );
}
