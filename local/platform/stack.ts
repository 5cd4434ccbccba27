// The whole of Supabase that Millrace needs, without Docker, on free ports of 127.0.0.1.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { startServices } from '../services/start-services.ts';
import { type DataFolder, takeDataFolder } from './data-folder.ts';
import { readUseNewPipeline, setProjectSecrets } from './database/project-secrets.ts';
import { createDataDirectory } from './database/template.ts';
import { requireFreePorts } from './free-port.ts';
import { functionEnvironment } from './functions/environment.ts';
import { createFunctionsHost, type FunctionsHost } from './functions/host.ts';
import { type FunctionLimits, hostedLimits } from './functions/limits.ts';
import { createKeyCheck } from './gateway/api-keys.ts';
import { startGateway } from './gateway/server.ts';
import { acceptedKeySet, createKeys, type Keys, signUserToken } from './keys.ts';
import { applyMigrations } from './migrate.ts';
import { type PgCron, startPgCron } from './pg-cron/worker.ts';
import { type PgNet, startPgNet } from './pg-net/worker.ts';
import { type Postgres, startPostgres } from './postgres.ts';
import { type Postgrest, startPostgrest } from './postgrest.ts';
import { scratchFolder } from './scratch-folder.ts';
import { createStorage } from './storage/server.ts';
import { startWatchdog } from './watchdog.ts';

const projectFolder = path.join(import.meta.dirname, '..', '..');

export interface StackOptions {
  /**
   * Settings of the functions and services, as in .env.example. SCRAPER_URL, OCR_URL, DEEPGRAM_URL or LLM_URL replaces
   * the local one.
   */
  env?: Record<string, string>;
  /** Whether to start the local scraper, OCR service, transcriber and model (default true). */
  services?: boolean;
  /** ChildCollector of migrations (default supabase/migrations), false for none. */
  migrations?: string | false;
  /** ChildCollector of Edge Functions (default supabase/functions). */
  functionsDir?: string;
  /** Keeps database, objects and keys in this folder over restarts. Default: a temporary folder. */
  dataDir?: string;
  /** Port of the API on 127.0.0.1 (default: a free one). */
  port?: number;
  /** Port of the database on 127.0.0.1 (default: a free one). */
  dbPort?: number;
  /** Default true: a commit is on disk when it is answered. */
  fsync?: boolean;
  /** Limits of each function's process; those of hosted Supabase unless set. */
  limits?: Partial<FunctionLimits>;
  /** Receives what functions and stand-ins write, line by line. */
  log?: (source: string, line: string) => void;
  /** Receives a word for each part as it gets ready. */
  progress?: (message: string) => void;
}

export interface Stack extends Keys {
  /** Logs in as postgres: owner of the database, no superuser. */
  dbUrl: string;
  /** Logs in as supabase_admin, the superuser. */
  superDbUrl: string;
  apiUrl: string;
  functionsUrl: string;
  /** Empty when there is none. */
  scraperUrl: string;
  ocrUrl: string;
  transcriberUrl: string;
  llmUrl: string;
  dataDir: string;
  postgres: Postgres;
  postgrest: Postgrest;
  functions: FunctionsHost;
  pgNet: PgNet;
  pgCron: PgCron;
  /** A token of a signed-in user; `claims` such as `{ sub, account_id }`. */
  signUserToken(claims: Record<string, unknown>): Promise<string>;
  stop(): Promise<void>;
}

/** Starts a stack. Whatever fails, nothing of it is left running. */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const {
    progress = () => {},
    fsync = true,
    log = () => {},
    functionsDir = path.join(projectFolder, 'supabase', 'functions'),
  } = options;
  const steps: (() => unknown)[] = [];
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= (async () => {
      for (const step of steps.reverse()) await step();
    })();
    return stopping;
  };

  try {
    const useNewPipeline = readUseNewPipeline(options.env ?? {});
    const watchdog = startWatchdog();
    steps.push(() => watchdog.dismiss());
    await requireFreePorts({ '--port': options.port, '--db-port': options.dbPort });
    const { folder: dataDir, release } = options.dataDir ? takeDataFolder(options.dataDir) : temporaryFolder(fsync);
    steps.push(release);
    if (!options.dataDir) watchdog.removeLater(dataDir);
    const keys = await readOrCreateKeys(path.join(dataDir, 'keys.json'));
    const wakeSecret = options.env?.MILLRACE_WAKE_SECRET || keys.wakeSecret;

    const migrations = options.migrations ?? path.join(projectFolder, 'supabase', 'migrations');
    const clusterDir = path.join(dataDir, 'postgres');
    const known = fs.existsSync(clusterDir);
    progress(known ? 'database: opening' : 'database: preparing');
    if (!known) await createDataDirectory(clusterDir, dataDir, migrations !== false && { folder: migrations });
    const postgres = await startPostgres({
      dataDir: clusterDir,
      ...(options.dbPort && { port: options.dbPort }),
      fsync,
      watchdog,
    });
    steps.push(() => postgres.stop());
    if (known && migrations !== false) await applyMigrations(postgres.url('postgres'), { folder: migrations });

    const gateway = await startGateway(createKeyCheck(keys), options.port);
    steps.push(() => gateway.stop());
    await setProjectSecrets(postgres.url('supabase_admin'), gateway.url, wakeSecret, useNewPipeline);

    progress('data API and workers: starting');
    const postgrest = await startPostgrest({
      dbUrl: postgres.url('authenticator'),
      keySet: acceptedKeySet(keys),
      watchdog,
    });
    steps.push(() => postgrest.stop());
    const services = await startServices({
      env: options.env ?? {},
      keys,
      local: options.services ?? true,
      apiUrl: gateway.url,
    });
    steps.push(() => services.stop());
    const storage = createStorage({
      folder: path.join(dataDir, 'storage'),
      databaseUrl: postgres.url('supabase_storage_admin'),
      secret: keys.jwtSecret,
    });
    steps.push(() => storage.stop());

    const functions = createFunctionsHost({
      folder: functionsDir,
      env: functionEnvironment(gateway.url, postgres.url('postgres'), keys, {
        ...services.env,
        MILLRACE_WAKE_SECRET: wakeSecret,
      }),
      limits: { ...hostedLimits, ...options.limits },
      watchdog,
      log,
    });
    const pgNet = startPgNet(postgres.url('supabase_admin'), (line) => log('pg_net', line));
    steps.push(() => pgNet.stop());
    const pgCron = startPgCron(postgres.url, (line) => log('pg_cron', line));
    steps.push(() => pgCron.stop());
    // Functions end first: what they release must still find the Data API.
    steps.push(() => functions.stop());
    gateway.open({ restPort: postgrest.port, functions, storage });

    return {
      ...keys,
      dbUrl: postgres.url('postgres'),
      superDbUrl: postgres.url('supabase_admin'),
      apiUrl: gateway.url,
      functionsUrl: `${gateway.url}/functions/v1`,
      scraperUrl: services.env.SCRAPER_URL ?? '',
      ocrUrl: services.env.OCR_URL ?? '',
      transcriberUrl: services.env.DEEPGRAM_URL ?? '',
      llmUrl: services.env.LLM_URL ?? '',
      dataDir,
      postgres,
      postgrest,
      functions,
      pgNet,
      pgCron,
      signUserToken: (claims) => signUserToken(keys, claims),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function temporaryFolder(fsync: boolean): DataFolder {
  // Nobody who does without fsync minds where the files are.
  const folder = fs.mkdtempSync(path.join(fsync ? os.tmpdir() : scratchFolder(), 'millrace-'));
  // Postgres may run as another user, who must get through to its own folder in here.
  fs.chmodSync(folder, 0o711);
  return { folder, release: () => fs.rmSync(folder, { recursive: true, force: true }) };
}

async function readOrCreateKeys(file: string): Promise<Keys> {
  // A folder that is older than one of the keys gets that key.
  const known = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : {};
  const keys = { ...(await createKeys()), ...known };
  fs.writeFileSync(file, JSON.stringify(keys), { mode: 0o600 });
  return keys;
}
