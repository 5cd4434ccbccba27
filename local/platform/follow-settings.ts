// A changed file of settings reaches the functions of a stack that runs, or the stack says that it does not.
import fs from 'node:fs';
import { isDeepStrictEqual, parseEnv } from 'node:util';
import type { Stack } from './stack.ts';

/** Returns the settings in `file`; none where it is not there. */
export function readEnvFile(file: string): Record<string, string> {
  return fs.existsSync(file) ? (parseEnv(fs.readFileSync(file, 'utf8')) as Record<string, string>) : {};
}

interface FollowOptions {
  everyMs?: number;
  /** The settings that the stack started with, where the file may have changed since. */
  known?: Record<string, string>;
}

/**
 * Gives the functions of a stack the settings of `file` each time they change, and says which did; looks every `everyMs` milliseconds.
 * The watch keeps no program alive. Returns a function that ends it.
 */
export function followSettings(
  file: string,
  stack: Pick<Stack, 'takeSettings'>,
  say: (message: string) => void,
  { everyMs = 1000, known = readEnvFile(file) }: FollowOptions = {},
): () => void {
  return onChange(file, everyMs, known, async (settings, names) => {
    try {
      await stack.takeSettings(settings);
      say(`${file} has changed: functions have ${names} from their next request on.`);
    } catch (error) {
      say(`${file} has changed, and is not taken: ${(error as Error).message}`);
    }
  });
}

/** Says each time that the settings of `file` change that a stack takes them at its next start alone. As `followSettings`. */
export function tellChangedSettings(file: string, say: (message: string) => void, everyMs = 1000): () => void {
  return onChange(file, everyMs, readEnvFile(file), async (_, names) => {
    say(`${file} has changed: this stack takes ${names} at its next start.`);
  });
}

/** Calls `changed` with the settings of `file` and the names of those that differ from before. */
function onChange(
  file: string,
  everyMs: number,
  known: Record<string, string>,
  changed: (settings: Record<string, string>, names: string) => Promise<void>,
): () => void {
  let last = known;
  const look = () => {
    const settings = readEnvFile(file);
    if (isDeepStrictEqual(settings, last)) return;
    const names = Object.keys({ ...last, ...settings })
      .filter((name) => last[name] !== settings[name])
      .sort();
    last = settings;
    void changed(settings, names.join(', '));
  };
  fs.watchFile(file, { interval: everyMs, persistent: false }, look);
  look();
  return () => fs.unwatchFile(file, look);
}
