// The files that a trial deploys. In the package @millrace/dev they lie packed beside its program, else as sources beside this file.
import fs from 'node:fs';
import path from 'node:path';
import { brotliDecompressSync } from 'node:zlib';

/** Returns the trial's files by their path: `functions/…` as in a project's `supabase/functions`, and the SQL beside them. */
export function trialFiles(): Record<string, string> {
  const packed = path.join(import.meta.dirname, 'trial.json.br');
  if (fs.existsSync(packed)) return JSON.parse(brotliDecompressSync(fs.readFileSync(packed)).toString());
  return readTrialFiles(import.meta.dirname);
}

/** Reads the trial's files from the sources in `folder`. Imports of the runtime lead to where a project has it. */
export function readTrialFiles(folder: string): Record<string, string> {
  const names = fs.readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = names
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
    .filter((file) => file.startsWith('functions/') || file.endsWith('.sql'))
    .sort();
  return Object.fromEntries(
    files.map((file) => [
      file,
      fs
        .readFileSync(path.join(folder, file), 'utf8')
        .replaceAll(/(?:\.\.\/)+supabase\/functions\/_millrace\//g, '../_millrace/'),
    ]),
  );
}

/** The functions that a trial deploys, `millrace` among them. */
export const trialFunctions = ['millrace', 'trial-judge', 'trial-read', 'trial-render', 'trial-service'];
