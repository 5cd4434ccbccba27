// The whole of Supabase that Millrace needs, without Docker, on free ports of 127.0.0.1.
import os from 'node:os';
import path from 'node:path';
import { createAuth } from './auth/server.ts';
import { takeDataFolder, temporaryDataFolder, temporaryPlace } from './data-folder.ts';
import { type DatabaseOptions, openDatabaseCluster } from './database/open-cluster.ts';
import { readUseNewPipeline, setProjectSecrets } from './database/project-secrets.ts';
import { requireFreePorts } from './free-port.ts';
import type { PackageSource } from './functions/deno-command.ts';
import { functionEnvironment } from './functions/environment.ts';
import { fetchPackages } from './functions/fetch-packages.ts';
import { createFunctionsHost, type FunctionsHost } from './functions/host.ts';
import { type FunctionLimits, hostedLimits } from './functions/limits.ts';
import { createKeyCheck } from './gateway/api-keys.ts';
import { type Gateway, startGateway } from './gateway/server.ts';
import { acceptedKeySet, type Keys, readOrCreateKeys, signUserToken } from './keys.ts';
import { createOperateApi, type OperateApi } from './operate/operate-api.ts';
import { followPort } from './pg-cron/follow-port.ts';
import { type PgCron, startPgCron } from './pg-cron/worker.ts';
import { type PgNet, startPgNet } from './pg-net/worker.ts';
import { aboveFolder } from './places.ts';
import type { Postgres } from './postgres.ts';
import { type Postgrest, type PostgrestOptions, startPostgrest } from './postgrest.ts';
import { startRealtime } from './realtime/server.ts';
import { requireRoom } from './require-room.ts';
import { createStorage } from './storage/server.ts';
import { createTeardown, type Teardown } from './teardown.ts';
import { startWatchdog, type Watchdog } from './watchdog.ts';

/** An empty cluster has 40 MB, its log of changes grows to some 200. */
const neededBytes = 300e6;
const otherFolder = 'name another folder with --data';
const otherPlace = 'set TMPDIR to another folder';

/** Services that run beside the platform, such as a scraper or a model. */
export interface Services {
  /** The functions' settings: those given, completed by what leads to these services. */
  env: Record<string, string>;
  stop(): Promise<void>;
}

/** Starts the services whose URLs are not among the settings in `env`; `apiUrl` is where they call back. */
export type StartServices = (given: { env: Record<string, string>; keys: Keys; apiUrl: string }) => Promise<Services>;

export interface StackOptions {
  /** Settings of the functions and services, as in .env.example. */
  env?: Record<string, string>;
  /** Starts the services that the functions ask (default: none). */
  services?: StartServices | false;
  /** Folder of migrations (default supabase/migrations), false for none. */
  migrations?: string | false;
  /** Folder of Edge Functions (default supabase/functions). */
  functionsDir?: string;
  /** Where functions find their packages (default: in the repository). */
  packages?: PackageSource;
  /** SQL files that a new database gets after the migrations: absolute paths, with wildcards. */
  seeds?: string[];
  /** How the Data API is configured (default: it serves the schema public). */
  dataApi?: Pick<PostgrestOptions, 'schemas' | 'extraSearchPath' | 'maxRows'>;
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
  /** An address that opens the operator's page in one browser, once. */
  operateLink(): string;
  /** A token of a signed-in user; `claims` such as `{ sub, account_id }`. */
  signUserToken(claims: Record<string, unknown>): Promise<string>;
  /**
   * Gives the functions these settings of the project instead of those they have, from their next request on. Throws where a setting
   * of the stack itself is wrong, and changes nothing then. Only for a stack without services, which would need a new start.
   */
  takeSettings(env: Record<string, string>): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a stack. Ends its parts again where one of them fails to start. */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const teardown = createTeardown();
  try {
    return await assemble(options, teardown);
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

async function assemble(options: StackOptions, teardown: Teardown): Promise<Stack> {
  const { env = {}, fsync = true, progress = () => {} } = options;
  const useNewPipeline = readUseNewPipeline(env);
  const watchdog = startWatchdog();
  teardown.add(() => watchdog.dismiss());
  await requireFreePorts({ '--port': options.port, '--db-port': options.dbPort });
  requireRoom(options.dataDir ?? temporaryPlace(fsync), neededBytes, options.dataDir ? otherFolder : otherPlace);
  const { folder: dataDir, release } = options.dataDir ? takeDataFolder(options.dataDir) : temporaryDataFolder(fsync);
  teardown.add(release);
  if (!options.dataDir) watchdog.removeLater(dataDir);
  const keys = await readOrCreateKeys(path.join(dataDir, 'keys.json'));
  const wakeSecret = wakeSecretOf(env, keys);

  let isFetching = true;
  const fetching = fetchForFunctions(options).finally(() => {
    isFetching = false;
  });
  fetching.catch(() => {});
  const postgres = await openDatabaseCluster({ ...clusterOptions(options, dataDir), watchdog, progress });
  teardown.add(() => postgres.stop());
  const gateway = await startGateway(createKeyCheck(keys), options.port);
  teardown.add(() => gateway.stop());
  await setProjectSecrets(postgres.url('supabase_admin'), gateway.url, wakeSecret, useNewPipeline);

  if (postgres.worksFor('pg_cron')) await followPort(postgres.url('supabase_admin'));

  if (isFetching) progress('functions: waiting until Deno has fetched what they import');
  await fetching;
  progress('data API and workers: starting');
  const base = { options, keys, wakeSecret, dataDir, postgres, gateway, watchdog };
  const parts = await startParts(base, teardown);
  return {
    ...keys,
    ...addressesOf(base, parts.settings),
    dataDir,
    postgres,
    postgrest: parts.postgrest,
    functions: parts.functions,
    pgNet: parts.pgNet,
    pgCron: parts.pgCron,
    operateLink: parts.api.link,
    takeSettings: (given) => takeSettings(base, parts.functions, given),
    signUserToken: (claims) => signUserToken(keys, claims),
    stop: teardown.run,
  };
}

function clusterOptions({ migrations, seeds = [], dbPort, fsync }: StackOptions, dataDir: string): DatabaseOptions {
  return {
    dataDir,
    migrations: migrations ?? path.join(aboveFolder, 'supabase', 'migrations'),
    seeds,
    port: dbPort,
    fsync: fsync ?? true,
  };
}

const wakeSecretOf = (env: Record<string, string>, keys: Keys) => env.MILLRACE_WAKE_SECRET || keys.wakeSecret;

const functionsFolder = ({ functionsDir }: StackOptions) =>
  functionsDir ?? path.join(aboveFolder, 'supabase', 'functions');

/** Has the functions' packages fetched, where they are not the repository's. */
async function fetchForFunctions(options: StackOptions): Promise<void> {
  if (options.packages !== 'deno') return;
  const { progress = () => {} } = options;
  for (const fault of await fetchPackages(functionsFolder(options))) progress(fault);
}

/** The parts of a stack that all others need. */
interface Base {
  options: StackOptions;
  keys: Keys;
  wakeSecret: string;
  dataDir: string;
  postgres: Postgres;
  gateway: Gateway;
  watchdog: Watchdog;
}

interface Parts extends Pick<Stack, 'postgrest' | 'functions' | 'pgNet' | 'pgCron'> {
  /** The functions' settings, completed by what leads to the services. */
  settings: Record<string, string>;
  api: OperateApi;
}

/** Starts what stands behind the gateway, and opens it. */
async function startParts(base: Base, teardown: Teardown): Promise<Parts> {
  const { options, keys, wakeSecret, dataDir, postgres, gateway, watchdog } = base;
  const { log = () => {} } = options;
  const restOptions = {
    ...options.dataApi,
    dbUrl: postgres.url('authenticator'),
    keySet: acceptedKeySet(keys),
    watchdog,
  };
  const postgrest = await startPostgrest(restOptions);
  teardown.add(() => postgrest.stop());
  const settings = await startServices(base, teardown);
  const storage = createStorage({
    folder: path.join(dataDir, 'storage'),
    databaseUrl: postgres.url('supabase_storage_admin'),
    secret: keys.jwtSecret,
  });
  teardown.add(() => storage.stop());
  const auth = createAuth({ databaseUrl: postgres.url('supabase_auth_admin'), keys, apiUrl: gateway.url });
  teardown.add(() => auth.stop());
  const realtime = startRealtime(postgres.url('supabase_admin'), (line) => log('realtime', line));
  teardown.add(() => realtime.stop());
  const functions = createFunctionsHost({
    folder: functionsFolder(options),
    packages: options.packages,
    env: environmentOf(base, settings, wakeSecret),
    limits: { ...hostedLimits, ...options.limits },
    watchdog,
    log,
  });
  const inPostgres = { stop: async () => {} };
  const pgNet = postgres.worksFor('pg_net')
    ? inPostgres
    : startPgNet(postgres.url('supabase_admin'), (line) => log('pg_net', line));
  teardown.add(() => pgNet.stop());
  const pgCron = postgres.worksFor('pg_cron') ? inPostgres : startPgCron(postgres.url, (line) => log('pg_cron', line));
  teardown.add(() => pgCron.stop());
  // Functions end first: what they release must still find the Data API.
  teardown.add(() => functions.stop());
  const api = createOperateApi({
    address: gateway.url,
    projectUrl: gateway.url,
    headers: { apikey: keys.secretKey },
    operator: os.userInfo().username,
  });
  gateway.open({ restPort: postgrest.port, functions, storage, auth, realtime, api });
  return { api, settings, postgrest, functions, pgNet, pgCron };
}

const environmentOf = ({ gateway, postgres, keys }: Base, settings: Record<string, string>, wakeSecret: string) =>
  functionEnvironment(gateway.url, postgres.url('postgres'), keys, { ...settings, MILLRACE_WAKE_SECRET: wakeSecret });

async function takeSettings(base: Base, functions: FunctionsHost, given: Record<string, string>): Promise<void> {
  const { postgres, gateway, keys } = base;
  const useNewPipeline = readUseNewPipeline(given);
  const wakeSecret = wakeSecretOf(given, keys);
  functions.setEnv(environmentOf(base, { WEBHOOK_SECRET: keys.webhookSecret, ...given }, wakeSecret));
  await setProjectSecrets(postgres.url('supabase_admin'), gateway.url, wakeSecret, useNewPipeline);
}

/** Starts the services that the options ask for. Resolves to the functions' settings. */
async function startServices({ options, keys, gateway }: Base, teardown: Teardown): Promise<Record<string, string>> {
  const env = { WEBHOOK_SECRET: keys.webhookSecret, ...options.env };
  if (!options.services) return env;
  const services = await options.services({ env, keys, apiUrl: gateway.url });
  teardown.add(() => services.stop());
  return services.env;
}

function addressesOf({ postgres, gateway }: Base, settings: Record<string, string>) {
  return {
    dbUrl: postgres.url('postgres'),
    superDbUrl: postgres.url('supabase_admin'),
    apiUrl: gateway.url,
    functionsUrl: `${gateway.url}/functions/v1`,
    scraperUrl: settings.SCRAPER_URL ?? '',
    ocrUrl: settings.OCR_URL ?? '',
    transcriberUrl: settings.DEEPGRAM_URL ?? '',
    llmUrl: settings.LLM_URL ?? '',
  };
}
