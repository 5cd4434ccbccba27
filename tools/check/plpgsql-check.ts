// The findings of `supabase db lint` about a project's functions: the engine's, the examples', and those that attach() and `adopt`
// write. No npm package brings its extension plpgsql_check, so an installed Postgres is asked, in a cluster of its own.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { extensionFiles } from '../../local/platform/extensions.ts';
import { freePort } from '../../local/platform/free-port.ts';
import { postgresUser } from '../../local/platform/postgres-user.ts';
import { startWatchdog } from '../../local/platform/watchdog.ts';
import { projectFolder } from './run-program.ts';

const run = promisify(execFile);
const installs = '/usr/lib/postgresql';
const migrations = path.join(projectFolder, 'supabase', 'migrations');
const ofPlatform = (file: string) => path.join(projectFolder, 'local', 'platform', file);
/**
 * Scripts of a project's database before its first migration. Extensions are scripts too, since no server here has
 * them.
 */
const platformFiles = [
  ...['database/roles.sql', 'database/schemas.sql', 'auth/auth.sql'].map(ofPlatform),
  ...extensionFiles.filter((file) => /(?:vault|pg-net|pg-cron)\/.*\.sql$/.test(file)),
  ...['database/webhooks.sql', 'realtime/realtime.sql', 'storage/storage.sql'].map(ofPlatform),
];

/** Returns the programs of a Postgres of the machine's that has plpgsql_check; undefined where there is none. */
export function lintingPostgres(): string | undefined {
  if (!fs.existsSync(installs)) return undefined;
  const versions = fs.readdirSync(installs).sort((one, other) => Number(other) - Number(one));
  return versions
    .map((version) => path.join(installs, version))
    .filter((folder) => fs.existsSync(path.join(folder, 'lib', 'plpgsql_check.so')))
    .map((folder) => path.join(folder, 'bin'))[0];
}

const identifiers =
  'All names come by %I, quote_ident() or regclass, types by format_type() of the catalog, values by USING.';
const ofTheTable = "The call stands in the engine's table of verbs, and what a person gives comes by USING.";

/** Functions whose EXECUTE takes a text that plpgsql_check cannot follow, each with the reason why nobody can put SQL into it. */
const sanitized: Record<string, string> = {
  act: ofTheTable,
  act_on_stage: ofTheTable,
  attach: 'Both statements are of names in the catalog: %I, regclass and regprocedure.',
  begin: identifiers,
  do_to_runs: ofTheTable,
  due_json: identifiers,
  scan_rows:
    'find_runs() and the lists build the parts: texts by quote_literal(), ids as numbers, a cursor in the form of check_request().',
  in_halves: 'Each caller gives a statement of its own, with ids by %s and the keys by USING.',
  input_fault: 'The text is a literal by %L, the type one that the engine names or reads from the catalog.',
  lock_definition: 'The mode is one of two words that define() writes, the table a regclass.',
  lock_due: identifiers,
  put_rows: 'define() names the table and the columns, the rows come by USING.',
  row_faults: `${identifiers} The pipeline's name and the key's type are literals by %L.`,
  row_part: identifiers,
  show_due: identifiers,
  start_due_runs: identifiers,
  visible_rows: 'watched_tables() reads the table and the type from the catalog; the keys come by USING.',
  write_function:
    'The head is of names by %I, the body one literal by %L. Its texts come from attach(), where all names are by %I.',
  write_triggers:
    'A pipeline has a name of lower-case letters, digits and _ by a constraint of its table; the rest is by %I, %L and regclass.',
};

/** Resolves to a line for each fault that plpgsql_check finds in a project's functions, empty when there is none. */
export async function checkFunctions(bin: string): Promise<string> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-lint-'));
  const user = postgresUser();
  if (user) fs.chownSync(folder, user.uid, user.gid);
  const data = path.join(folder, 'data');
  const port = await freePort();
  const options = { ...user, cwd: '/', env: { TZ: 'UTC', LC_ALL: 'C' } };
  const watchdog = startWatchdog();
  watchdog.removeLater(folder);
  try {
    const made = ['--username=supabase_admin', '--encoding=UTF8', '--no-locale', '--no-sync', '--auth=trust'];
    await run(path.join(bin, 'initdb'), ['-D', data, ...made], options);
    const set = [
      `port=${port}`,
      'listen_addresses=127.0.0.1',
      'unix_socket_directories=',
      'fsync=off',
      'autovacuum=off',
    ];
    const given = ['-D', data, ...set.flatMap((setting) => ['-c', setting])];
    const server = spawn(path.join(bin, 'postgres'), given, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
    watchdog.watch(server);
    const ended = once(server, 'exit');
    await isReady(server);
    try {
      return await lint(`postgresql://supabase_admin@127.0.0.1:${port}/postgres`);
    } finally {
      server.kill('SIGQUIT');
      await ended;
    }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
    watchdog.dismiss();
  }
}

/** Resolves when a server accepts connections. Throws with its log when it ends before. */
function isReady(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = '';
    server.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-8000);
      if (log.includes('ready to accept connections')) resolve();
    });
    server.once('error', reject);
    server.once('exit', () => reject(new Error(`Postgres did not start:\n${log}`)));
  });
}

async function lint(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query('create schema vault');
    for (const file of platformFiles) {
      await client.query(fs.readFileSync(file, 'utf8'));
      // Here no extension is trusted, and postgres creates some.
      if (file.endsWith('roles.sql')) await client.query('alter role postgres superuser');
    }
    await client.query('alter role postgres nosuperuser');
    await client.query(rightsOfPostgres);
    for (const file of fs.readdirSync(migrations).sort()) {
      if (!file.endsWith('.sql')) continue;
      await client.query(fs.readFileSync(path.join(migrations, file), 'utf8'));
    }
    await client.query(fs.readFileSync(path.join(projectFolder, 'cli', 'adopt', 'adopt.sql'), 'utf8'));
    await client.query('reset role; create extension plpgsql_check');
    const { rows } = await client.query<Fault>(faults);
    return faultsOf(rows).join('\n');
  } finally {
    await client.end();
  }
}

/** Warnings of other kinds are about taste: a constant cast once, a parameter that one of several functions has no use for. */
function faultsOf(rows: Fault[]): string[] {
  const unsafe = rows.filter(({ level }) => level === 'security').map(({ name }) => name);
  const gone = Object.keys(sanitized).filter((name) => !unsafe.includes(name));
  return [
    ...rows
      .filter(({ level, name }) => level === 'error' || (level === 'security' && !(name in sanitized)))
      .map(({ name, level, line, message, detail }) => `${name}():${line ?? ''} ${level}: ${message} ${detail ?? ''}`),
    ...gone.map(
      (name) => `${name}() has no such warning (any more): take it from the list in tools/check/plpgsql-check.ts`,
    ),
  ];
}

/** Rights of postgres, who applies the migrations: the extension pg_cron would have granted some of them. */
const rightsOfPostgres = `
  alter database postgres owner to postgres;
  grant usage on schema cron to postgres with grant option;
  grant all on all functions in schema cron to postgres with grant option;
  grant all on all tables in schema cron to postgres with grant option;
  set role postgres`;

interface Fault {
  name: string;
  level: string;
  line: number | null;
  message: string;
  detail: string | null;
}

/** Asks plpgsql_check as supabase db lint does. A trigger's function is checked for one table, if possible with transition tables. */
const faults = `
  select p.proname as name, f.level, f.lineno as line, f.message, f.detail
  from (
    select distinct on (p.oid) p.oid, coalesce(t.tgrelid, 0) as relation, t.tgoldtable, t.tgnewtable
    from pg_proc p
    left join pg_trigger t on t.tgfoid = p.oid and not t.tgisinternal
    where p.pronamespace in ('millrace'::regnamespace, 'millrace_evidence'::regnamespace, 'public'::regnamespace)
      and p.prolang = (select l.oid from pg_language l where l.lanname = 'plpgsql')
      and (p.prorettype <> 'trigger'::regtype or t.tgrelid is not null)
    -- A trigger after updates has both transition tables.
    order by p.oid, t.tgoldtable is null, t.tgnewtable is null) c
  cross join lateral plpgsql_check_function_tb(c.oid, c.relation, security_warnings => true,
    oldtable => c.tgoldtable, newtable => c.tgnewtable) f
  join pg_proc p on p.oid = f.functionid
  order by 1, 3`;
