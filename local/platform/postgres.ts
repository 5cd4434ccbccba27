// Embedded Postgres as a child process: no socket files, loopback only, the same data directory and port over
// restarts. Roles and schemas are made by local/platform/database/template.ts.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { childProcesses, waitUntilGone } from './child-processes.ts';
import { installExtensions, realWorkers } from './extensions.ts';
import { freePort } from './free-port.ts';
import { postgresFiles } from './postgres-files.ts';
import { postgresUser } from './postgres-user.ts';
import type { Watchdog } from './watchdog.ts';

const run = promisify(execFile);
const databasePassword = 'postgres';

export interface Postgres {
  readonly port: number;
  readonly dataDir: string;
  /** Whether it works for this extension itself, so that no stand-in must. */
  worksFor(extension: 'pg_net' | 'pg_cron'): boolean;
  /** Connection URL of a role that may log in: supabase_admin, supabase_storage_admin, postgres or authenticator. */
  url(role: string, database?: string): string;
  /** Starts on the same data directory and port. Resolves when connections are accepted. */
  start(): Promise<void>;
  /** Ends all sessions and shuts down cleanly. */
  stop(): Promise<void>;
  /** Dies as in a crash: SIGKILL to the server and to every process of it. */
  kill9(): Promise<void>;
}

export interface PostgresOptions {
  dataDir: string;
  port?: number;
  /** Default true. Without it a commit survives a crash of Postgres, but not one of the machine. */
  fsync?: boolean;
  /** Default 100. */
  maxConnections?: number;
  /** The database in which real extensions work (default: postgres). */
  workersIn?: string;
  /** Default true. Without it nothing gathers statistics by itself. */
  autovacuum?: boolean;
  watchdog?: Watchdog;
}

function programs() {
  const files = postgresFiles();
  installExtensions(files);
  const env = {
    PATH: '/usr/bin:/bin',
    TZ: 'UTC',
    LC_ALL: 'C',
    LD_LIBRARY_PATH: path.dirname(files.libraries),
    // The real pg_cron opens its jobs' sessions with it.
    PGPASSWORD: databasePassword,
  };
  return { files, spawnOptions: { ...postgresUser(), cwd: '/', env } };
}

/** Makes an empty cluster in `dataDir`, which must not exist yet. Its superuser is supabase_admin. */
export async function initializeCluster(dataDir: string): Promise<void> {
  const { files, spawnOptions } = programs();
  fs.mkdirSync(dataDir, { mode: 0o700 });
  const user = postgresUser();
  if (user) fs.chownSync(dataDir, user.uid, user.gid);
  const passwordFile = path.join(dataDir, '..', `${path.basename(dataDir)}.password`);
  fs.writeFileSync(passwordFile, databasePassword, { mode: 0o644 });
  try {
    const major = Number.parseInt(files.version, 10);
    const locale =
      major >= 17 ? ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'] : ['--locale=C.UTF-8'];
    // One round: the password is no secret, and the usual 4096 would cost each new session more than all else it does.
    const rounds = major >= 16 ? ['--set=scram_iterations=1'] : [];
    const access = ['--username=supabase_admin', '--auth=scram-sha-256', ...rounds, `--pwfile=${passwordFile}`];
    const made = ['-D', dataDir, '--no-sync', '--encoding=UTF8', ...locale, ...access];
    await run(path.join(files.bin, 'initdb'), made, spawnOptions);
  } finally {
    fs.rmSync(passwordFile);
  }
}

/** Starts Postgres on an existing data directory. Resolves when connections are accepted. */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const { dataDir } = options;
  let port = options.port ?? (await freePort());
  let server: ChildProcess | undefined;

  async function start() {
    if (server) throw new Error('Postgres is running already.');
    for (let attempt = 1; ; attempt += 1) {
      try {
        server = await launch(options, port);
        break;
      } catch (error) {
        // Between finding a free port and binding it another process may take it.
        const taken = error instanceof Error && error.message.includes('Address already in use');
        if (!taken || options.port !== undefined || attempt === 5) throw error;
        port = await freePort();
      }
    }
    options.watchdog?.watch(server);
    const current = server;
    server.once('exit', () => {
      if (server === current) server = undefined;
    });
  }

  async function end(signal: NodeJS.Signals) {
    const current = server;
    if (!current?.pid) return;
    const pids = [current.pid, ...(signal === 'SIGKILL' ? childProcesses(current.pid) : [])];
    const gone = new Promise((resolve) => current.once('exit', resolve));
    for (const pid of pids) {
      try {
        process.kill(pid, signal);
      } catch {
        // The process has ended by itself meanwhile.
      }
    }
    await gone;
    server = undefined;
    await waitUntilGone(pids);
  }

  await start();
  return {
    get port() {
      return port;
    },
    dataDir,
    worksFor: (extension) => realWorkers(programs().files).includes(extension),
    url: (role, database = 'postgres') => `postgresql://${role}:${databasePassword}@127.0.0.1:${port}/${database}`,
    start,
    stop: () => end('SIGINT'),
    kill9: () => end('SIGKILL'),
  };
}

function launch(options: PostgresOptions, port: number): Promise<ChildProcess> {
  const { dataDir, fsync = true, maxConnections = 100, workersIn = 'postgres', autovacuum = true } = options;
  const { files, spawnOptions } = programs();
  const real = realWorkers(files);
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    fsync: fsync ? 'on' : 'off',
    max_connections: maxConnections,
    timezone: 'UTC',
    // Hosted's, for every role that has none of its own.
    statement_timeout: '2min',
    autovacuum: autovacuum ? 'on' : 'off',
    ...(real.length > 0 && { shared_preload_libraries: real.join(',') }),
    ...(real.includes('pg_net') && { 'pg_net.database_name': workersIn }),
    ...(real.includes('pg_cron') && { 'cron.database_name': workersIn }),
    // Its log need not be on disk, so that its files stay empty until they are written: they are copied with each new stack.
    ...(!fsync && { wal_init_zero: 'off', wal_recycle: 'off' }),
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  // Memory that a session gives back is needed again for its next plan. Keeping it saves a thirtieth of the CPU.
  const spared = { MALLOC_TRIM_THRESHOLD_: '67108864', MALLOC_MMAP_THRESHOLD_: '67108864', MALLOC_TOP_PAD_: '2097152' };
  const child = spawn(path.join(files.bin, 'postgres'), ['-D', dataDir, ...args], {
    ...spawnOptions,
    env: { ...spawnOptions.env, ...(!fsync && spared) },
    // Its own session, so that Ctrl-C at a terminal reaches only the stack, which stops things in order.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  return new Promise((resolve, reject) => {
    let log = '';
    let ready = false;
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      if (ready) return;
      log = (log + text).slice(-8000);
      if (log.includes('database system is ready to accept connections')) {
        ready = true;
        log = '';
        resolve(child);
      }
    });
    child.once('error', reject);
    child.once('exit', (code) => {
      if (ready) return;
      // A server whose stack was killed runs on for some moments.
      const still = log.includes('lock file "postmaster.pid" already exists');
      const why = still ? `The Postgres of ${dataDir} still runs: wait until it has ended.` : undefined;
      reject(new Error(why ?? `Postgres did not start (exit code ${code}):\n${log}`));
    });
  });
}
