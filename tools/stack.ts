// npm run stack: starts a stack and keeps it until Ctrl-C. With --json it prints one line for programs to read.
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs, parseEnv } from 'node:util';
import pc from 'picocolors';
import { findProject } from '../cli/project/find-project.ts';
import { reviewLink } from '../local/platform/review-link.ts';
import { readSettings, settingWarnings } from '../local/platform/settings.ts';
import { type Stack, type StackOptions, startStack } from '../local/platform/stack.ts';
import { startServices } from '../local/services/start-services.ts';
import { argumentsOrExit, refuseKeptByNpm } from './command-arguments.ts';
import { readPort } from './read-port.ts';

const usage = `npm run stack -- [--project DIR] [--json] [--data DIR] [--port N] [--db-port N]
  --project DIR  run the migrations and functions of the project in DIR, with the settings of its supabase/functions/.env
  --json       print one line of JSON when ready, nothing else on standard output
  --data DIR   keep the data in DIR and find it there at the next start
  --port N     serve the API on port N of 127.0.0.1 (default: a free port)
  --db-port N  the same for the database`;

const {
  project,
  json = false,
  data,
  port,
  dbPort,
} = argumentsOrExit(usage, () => {
  refuseKeptByNpm('stack', ['project', 'json', 'data', 'port', 'db-port']);
  const options = {
    project: { type: 'string' },
    json: { type: 'boolean' },
    data: { type: 'string' },
    port: { type: 'string' },
    'db-port': { type: 'string' },
    help: { type: 'boolean' },
  } as const;
  const { values } = parseArgs({ options });
  if (values.data === '') throw new Error('--data is empty: name a folder.');
  return { ...values, port: readPort('--port', values.port), dbPort: readPort('--db-port', values['db-port']) };
});

/** What a stack runs of another project: no example's services, and the settings that its functions have locally. */
function ofProject(folder: string): StackOptions {
  const supabase = path.join(findProject(folder).root, 'supabase');
  const envFile = path.join(supabase, 'functions', '.env');
  const env = fs.existsSync(envFile) ? parseEnv(fs.readFileSync(envFile, 'utf8')) : {};
  return {
    migrations: path.join(supabase, 'migrations'),
    functionsDir: path.join(supabase, 'functions'),
    env: env as Record<string, string>,
  };
}

let stack: Stack | undefined;
let ending = false;

async function end(): Promise<void> {
  if (ending) return;
  ending = true;
  if (!json) console.log(pc.dim('stopping …'));
  // While it still starts, the end of the start takes care of the stop.
  if (!stack) return;
  await stack.stop();
  process.exit(0);
}
process.on('SIGINT', end);
process.on('SIGTERM', end);
process.on('SIGHUP', end);
// The process that started this has died.
process.on('disconnect', end);

function printAddresses(ready: Stack, seconds: string, reviewPage: string): void {
  const rows = {
    API: ready.apiUrl,
    Functions: ready.functionsUrl,
    Database: ready.dbUrl,
    Scraper: ready.scraperUrl,
    OCR: ready.ocrUrl,
    Transcriber: ready.transcriberUrl,
    Model: ready.llmUrl,
    'Secret key': ready.secretKey,
    'Publishable key': ready.publishableKey,
    'service_role key': ready.serviceRoleKey,
    'anon key': ready.anonKey,
    'Data folder': ready.dataDir,
    'Review page': reviewPage,
    "Operator's page": ready.operateLink(),
  };
  console.log(pc.green(`ready in ${seconds} s`));
  for (const [name, value] of Object.entries(rows)) console.log(`  ${pc.bold(name.padEnd(17))} ${value}`);
  console.log(pc.dim('Ctrl-C stops it. What functions write appears below.'));
}

try {
  if (!project) for (const line of settingWarnings()) console.error(pc.yellow(line));
  const started = Date.now();
  const ready = await startStack({
    ...(project ? ofProject(project) : { env: readSettings(), services: startServices }),
    ...(data && { dataDir: data }),
    ...(port && { port }),
    ...(dbPort && { dbPort }),
    progress: (message) => console.error(pc.dim(message)),
    log: (source, line) => console.error(`${pc.cyan(source)} ${line}`),
  });
  stack = ready;
  if (ending) {
    await ready.stop();
    process.exit(0);
  }
  if (json) {
    const { dbUrl, apiUrl, functionsUrl, secretKey, publishableKey, serviceRoleKey, anonKey } = ready;
    const { scraperUrl, ocrUrl, transcriberUrl, llmUrl, dataDir } = ready;
    const addresses = { dbUrl, apiUrl, functionsUrl, secretKey, publishableKey, serviceRoleKey, anonKey };
    console.log(JSON.stringify({ ...addresses, scraperUrl, ocrUrl, transcriberUrl, llmUrl, dataDir }));
  } else {
    const seconds = ((Date.now() - started) / 1000).toFixed(1);
    printAddresses(ready, seconds, await reviewLink(ready, 'curator'));
  }
} catch (error) {
  // Ctrl-C while starting ends the programs that prepare the database too: no failure worth telling.
  if (!ending) console.error(pc.red((error as Error).message));
  process.exit(ending ? 130 : 1);
}
