// Tells of migrations that were edited after a kept database took them: no database takes one twice.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { migrationFiles } from './migrate.ts';

const notesName = 'migrations.json';

/** Notes in the data folder what the migrations say that its database has. */
export function noteMigrations(dataDir: string, folder: string): void {
  const known = { ...digests(folder), ...readNotes(dataDir) };
  fs.writeFileSync(path.join(dataDir, notesName), `${JSON.stringify(known, null, 2)}\n`);
}

/** A sentence, with the remedy, for each migration that is not what it was when the database in the data folder took it. */
export function editedMigrations(dataDir: string, folder: string): string[] {
  const now = digests(folder);
  return Object.entries(readNotes(dataDir))
    .filter(([name, taken]) => now[name] !== taken)
    .map(
      ([name]) =>
        `The migration ${name} was ${now[name] ? 'edited' : 'removed or renamed'} after the database in ${dataDir} took it, ` +
        'which stays as it was: put it back and write a new one, or remove the folder to begin anew.',
    );
}

function readNotes(dataDir: string): Record<string, string> {
  const file = path.join(dataDir, notesName);
  return fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : {};
}

function digests(folder: string): Record<string, string> {
  return Object.fromEntries(
    migrationFiles({ folder }).map((file) => [
      path.basename(file),
      createHash('sha256').update(fs.readFileSync(file)).digest('hex'),
    ]),
  );
}
