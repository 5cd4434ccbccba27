// The extensions of a hosted project: stand-ins of those that are no part of Postgres, and who may create the others. They are
// files like the real ones, so that Postgres itself checks the statement that creates one.
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { ownFolder } from './places.ts';
import type { PostgresFiles } from './postgres-files.ts';

type Places = Pick<PostgresFiles, 'extensions' | 'libraries'>;

/** Extensions, each with the files that Postgres looks for. */
const standIns: Record<string, string[]> = {
  supabase_vault: ['vault/supabase_vault.control', 'vault/supabase_vault--0.3.1.sql'],
  pg_net: ['pg-net/pg_net.control', 'pg-net/pg_net--0.20.4.sql'],
  pg_cron: ['pg-cron/pg_cron.control', 'pg-cron/pg_cron--1.6.4.sql'],
  pg_graphql: ['graphql/pg_graphql.control', 'graphql/pg_graphql--1.5.11.sql'],
  pgjwt: ['pgjwt/pgjwt.control', 'pgjwt/pgjwt--0.2.0.sql'],
  pgsodium: ['pgsodium/pgsodium.control', 'pgsodium/pgsodium--3.1.9.sql'],
};
const withWorkers = ['pg_net', 'pg_cron'];
/** Postgres's own extensions that ask for a superuser, but that hosted lets postgres create. */
const allowed = [
  ...['autoinc', 'bloom', 'dblink', 'dict_xsyn', 'earthdistance', 'insert_username', 'moddatetime', 'pg_buffercache'],
  ...['pg_stat_statements', 'pg_walinspect', 'pgrowlocks', 'pgstattuple', 'postgres_fdw', 'refint', 'sslinfo', 'xml2'],
];
const mark = "comment = 'Stand-in";

/** The files of the stand-ins, which decide what a cluster is like. */
export const extensionFiles = Object.values(standIns)
  .flat()
  .map((file) => path.join(ownFolder, file));

/** Makes the extensions available to a Postgres; one that is really installed stays as it is. */
export function installExtensions({ extensions: controls }: Places): void {
  for (const [name, files] of Object.entries(standIns)) {
    const control = path.join(controls, `${name}.control`);
    if (isReal(control)) continue;
    // The control file last: with it the extension is there.
    for (const file of files.toReversed()) {
      write(path.join(controls, path.basename(file)), fs.readFileSync(path.join(ownFolder, file), 'utf8'));
    }
  }
  for (const name of allowed) {
    const control = path.join(controls, `${name}.control`);
    if (!fs.existsSync(control)) continue;
    const text = fs.readFileSync(control, 'utf8');
    if (!/^trusted/m.test(text)) write(control, `${text.trimEnd()}\ntrusted = true\n`);
  }
}

/** Returns the real extensions of a Postgres that have processes of their own. Postgres loads these at its start. */
export function realWorkers({ extensions }: Places): string[] {
  return withWorkers.filter((name) => isReal(path.join(extensions, `${name}.control`)));
}

/** Returns whether a Postgres has safeupdate, which is a library alone. */
export function hasSafeUpdate({ libraries }: Places): boolean {
  return ['so', 'dylib'].some((ending) => fs.existsSync(path.join(libraries, `safeupdate.${ending}`)));
}

/** Returns whether an extension of this name is a stand-in where this Postgres runs. */
export function standsIn({ extensions }: Places, name: string): boolean {
  return name in standIns && !isReal(path.join(extensions, `${name}.control`));
}

function isReal(control: string): boolean {
  return fs.existsSync(control) && !fs.readFileSync(control, 'utf8').includes(mark) && !isOldCron(control);
}

/** Of before 1.5, such as Debian's 1.4: without seconds in a schedule, so that the stand-in runs instead. */
function isOldCron(control: string): boolean {
  const [, major, minor] = versionIn(control);
  return path.basename(control) === 'pg_cron.control' && Number(major) === 1 && Number(minor) < 5;
}

const versionIn = (control: string) =>
  /default_version\s*=\s*'(\d+)\.(\d+)/.exec(fs.readFileSync(control, 'utf8')) ?? [];

/** Says that the installed pg_cron is too old for the engine, and what helps; undefined where it is not. */
export function oldCronNotice({ installedExtensions }: Pick<PostgresFiles, 'installedExtensions'>): string | undefined {
  const control = path.join(installedExtensions, 'pg_cron.control');
  if (!fs.existsSync(control) || !isOldCron(control)) return undefined;
  const [, major, minor] = versionIn(control);
  return (
    `The pg_cron of this Postgres is ${major}.${minor}, but the engine's schedules in seconds need 1.5 or newer: the stand-in of pg_cron ` +
    'runs instead. For the real one take pg_cron 1.6.4 from https://github.com/citusdata/pg_cron, ' +
    '`make install PG_CONFIG=DIR/bin/pg_config`, and start again.'
  );
}

/** Returns the names of all extensions that a Postgres can create, once these are installed. */
export function knownExtensions({ extensions }: Places): string[] {
  const there = fs.readdirSync(extensions).flatMap((file) => (/^(.+)\.control$/.exec(file) ?? []).slice(1));
  return [...Object.keys(standIns), ...there];
}

/** Writes aside and renames, so that a server which starts meanwhile reads none or a whole one. */
function write(target: string, text: string): void {
  if (fs.existsSync(target) && fs.readFileSync(target, 'utf8') === text) return;
  const draft = `${target}.${randomUUID()}`;
  fs.writeFileSync(draft, text, { mode: 0o644 });
  fs.renameSync(draft, target);
}
