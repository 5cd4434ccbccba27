// Finds migrations that a deployment would refuse, or that drop what is Millrace's.
import fs from 'node:fs';
import path from 'node:path';
import { withDigest } from '../../supabase/functions/_millrace/compile/compile-pipeline.ts';
import { futureStamps } from '../migration-stamps.ts';
import { callsEngine, levelIn, sinceUninstall } from '../project/engine-level.ts';
import { migrationsOf, type Project } from '../project/find-project.ts';
import { renamesTable, tableLacking } from '../project/stage-columns.ts';
import { definitionsIn } from '../sync/pipeline-migration.ts';
import { dropFaults, type Migration } from './drop-faults.ts';

/** Returns a sentence, with the remedy, for each migration that is out of order or drops what the engine needs. */
export function migrationFaults(project: Project): string[] {
  const folder = path.join(project.root, 'supabase', 'migrations');
  const names = migrationsOf(project);
  const migrations = names.map((name) => ({ name, text: fs.readFileSync(path.join(folder, name), 'utf8') }));
  return [
    ...futureStamps(names, Date.now()),
    ...stampFaults(names),
    ...orderFaults(migrations),
    ...tableFaults(migrations),
    ...editFaults(migrations),
    ...renameFaults(migrations),
    ...dropFaults(migrations),
  ];
}

/** Migrations without a stamp, which the supabase CLI skips, and two of one stamp, of which it takes one. */
function stampFaults(names: string[]): string[] {
  const stamps = names.map((name) => /^\d+(?=_)/.exec(name)?.[0]);
  return names.flatMap((name, at) => {
    if (stamps[at] === undefined)
      return [`supabase/migrations/${name} has no stamp, so it is skipped: name it 20261231235959_….sql.`];
    const same = stamps.indexOf(stamps[at]);
    return same < at ? [`supabase/migrations/${name} has the stamp of ${names[same]}: rename one of them.`] : [];
  });
}

function orderFaults(migrations: Migration[]): string[] {
  const installs = migrations.findIndex(({ text }) => levelIn(text) !== null);
  return migrations
    .slice(0, Math.max(installs, 0))
    .filter(({ text }) => callsEngine(text))
    .map(
      ({ name }) =>
        `supabase/migrations/${name} calls the engine before ${migrations[installs]?.name} installs it: give it a later stamp.`,
    );
}

/** Pipelines that a migration defines before another makes their table. */
function tableFaults(migrations: Migration[]): string[] {
  const texts = migrations.map(({ text }) => text);
  return migrations.flatMap(({ name, text }, at) =>
    [...definitionsIn([text]).values()].flatMap(({ pipeline, entity: { table } }) => {
      const isEarly = tableLacking(texts.slice(0, at), table) && !tableLacking(texts, table);
      if (!isEarly) return [];
      return [
        `supabase/migrations/${name} defines pipeline ${pipeline} before a later one makes ${table}: delete it and run \`npx millrace ` +
          'sync`, or where a database has taken it give the other an earlier stamp.',
      ];
    }),
  );
}

/** Migrations of pipelines that were edited after `sync` wrote them: the database refuses such a definition. */
function editFaults(migrations: Migration[]): string[] {
  return migrations.flatMap(({ name, text }) =>
    [...definitionsIn([text]).values()]
      .filter((definition) => withDigest(definition).digest !== definition.digest)
      .map(
        ({ pipeline }) =>
          `supabase/migrations/${name} defines pipeline ${pipeline} otherwise than \`npx millrace sync\` wrote it: restore it, or ` +
          'delete it where no database has taken it; then change the definition and run that again.',
      ),
  );
}

/** Tables that a migration renames while a pipeline is defined over them. */
function renameFaults(migrations: Migration[]): string[] {
  const texts = migrations.map(({ text }) => text);
  return [...definitionsIn(sinceUninstall(texts)).values()].flatMap(({ pipeline, digest, entity: { table } }) => {
    const defined = texts.findLastIndex((text) => text.includes(digest));
    const renamed = texts.findLastIndex((text, at) => at > defined && renamesTable(text, table));
    if (renamed < 0 || !tableLacking(texts.slice(renamed + 1), table)) return [];
    return [
      `supabase/migrations/${migrations[renamed]?.name} renames ${table}, over which pipeline ${pipeline} is defined: write the ` +
        'new name into its definition and run `npx millrace sync`.',
    ];
  });
}
