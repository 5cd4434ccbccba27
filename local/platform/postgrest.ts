// The Data API: the real PostgREST, configured as on hosted Supabase.
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { postgrestBinary } from './binaries.ts';
import { freePort } from './free-port.ts';
import type { Watchdog } from './watchdog.ts';

const readyTimeoutMs = 20_000;
const portAttempts = 5;

export interface Postgrest {
  port: number;
  /** Dies as in a crash, and comes back on the same port. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface PostgrestOptions {
  /** Logs in as authenticator. */
  dbUrl: string;
  /** JSON Web Key Set of the keys that may have signed a token. */
  keySet: object;
  /** The schemas that it serves, the first one unless a request names another (default: public). */
  schemas?: string[] | undefined;
  /** Schemas in which functions that it calls find names (default: public and extensions). */
  extraSearchPath?: string[] | undefined;
  /** The most rows of an answer (default: 1000). */
  maxRows?: number | undefined;
  watchdog?: Watchdog;
}

/** Starts PostgREST. Resolves when its schema cache is loaded. */
export async function startPostgrest(options: PostgrestOptions): Promise<Postgrest> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const [port, adminPort] = [await freePort(), await freePort()];
      let stop = await launch(options, port, adminPort);
      const restart = async () => {
        await stop();
        stop = await launch(options, port, adminPort);
      };
      return { port, restart, stop: () => stop() };
    } catch (error) {
      // Between finding a free port and binding it another process may take it.
      if (attempt === portAttempts || !/in use|resource busy/i.test(String(error))) throw error;
    }
  }
}

/** Starts PostgREST. Resolves to its process and a function that stops it. */
async function launch(options: PostgrestOptions, port: number, adminPort: number) {
  const { dbUrl, keySet, watchdog, schemas = ['public'], maxRows = 1000 } = options;
  const { extraSearchPath = ['public', 'extensions'] } = options;
  const child = spawn(postgrestBinary(), [], {
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      LC_ALL: 'C.UTF-8',
      PGRST_DB_URI: dbUrl,
      PGRST_DB_SCHEMAS: schemas.join(','),
      PGRST_DB_EXTRA_SEARCH_PATH: extraSearchPath.join(','),
      PGRST_DB_ANON_ROLE: 'anon',
      PGRST_DB_MAX_ROWS: String(maxRows),
      PGRST_DB_POOL: '15',
      PGRST_DB_USE_LEGACY_GUCS: 'false',
      PGRST_JWT_SECRET: JSON.stringify(keySet),
      PGRST_JWT_CACHE_MAX_LIFETIME: '60',
      PGRST_SERVER_HOST: '127.0.0.1',
      PGRST_SERVER_PORT: String(port),
      PGRST_ADMIN_SERVER_PORT: String(adminPort),
      PGRST_LOG_LEVEL: 'error',
    },
  });
  watchdog?.watch(child);
  let log = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-4000);
    });
  }
  child.once('error', (error) => {
    log += String(error);
  });
  const deadline = Date.now() + readyTimeoutMs;
  while (!(await isReady(adminPort))) {
    if (hasEnded(child)) throw new Error(`PostgREST did not start:\n${log}`);
    if (Date.now() > deadline) {
      child.kill('SIGKILL');
      throw new Error(`PostgREST was not ready within ${readyTimeoutMs} ms:\n${log}`);
    }
    await delay(25);
  }
  return async () => {
    if (hasEnded(child)) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  };
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
}

async function isReady(adminPort: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${adminPort}/ready`).then(
    (answer) => answer.status === 200,
    () => false,
  );
}
