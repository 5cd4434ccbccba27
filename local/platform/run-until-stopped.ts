// Starts a stack for a person at a terminal, or for a program that reads one line, and keeps it until it is told to stop.
import path from 'node:path';
import pc from 'picocolors';
import { reloadEdited } from './functions/reload-edited.ts';
import { whenNpmEnds } from './parent-ends.ts';
import { findRunningStack, noteRunningStack } from './running-stack.ts';
import type { Stack, StackOptions } from './stack.ts';

export interface StackRun {
  /** The folder that holds `supabase/`, where commands find out that a stack runs. */
  root: string;
  /** A line of JSON when ready, nothing else on standard output. */
  json: boolean;
  /** Further addresses to print when the stack is ready, by their names. */
  links?: (stack: Stack) => Promise<Record<string, string>>;
  /** Starts it; what it says goes where the person sees it. */
  start(say: Pick<StackOptions, 'progress' | 'log'>): Promise<Stack>;
}

/** Loads edited functions while it runs. Ends the process when the stack has ended. */
export async function runUntilStopped({ root, json, links = async () => ({}), start }: StackRun): Promise<void> {
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
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, end);
  // The process that started this has died.
  process.on('disconnect', end);
  whenNpmEnds(end);

  try {
    const started = Date.now();
    const other = findRunningStack(root);
    if (other) {
      console.error(
        `Another stack over this project runs already, at ${other.apiUrl} (process ${other.pid}). This one gets a database of its own, ` +
          'and commands ask this one while it runs.',
      );
    }
    const ready = await start({
      progress: (message) => console.error(pc.dim(message)),
      log: (source, line) => console.error(`${pc.cyan(source)} ${line}`),
    });
    stack = ready;
    if (ending) {
      await ready.stop();
      process.exit(0);
    }
    process.once('exit', noteRunningStack(root, ready));
    await reloadEdited(path.join(root, 'supabase', 'functions'), ready.functions);
    if (json) console.log(JSON.stringify(addressesFor(ready)));
    else printAddresses(ready, ((Date.now() - started) / 1000).toFixed(1), await links(ready));
  } catch (error) {
    // Ctrl-C while starting ends the programs that prepare the database too: no failure worth telling.
    if (!ending) console.error(pc.red((error as Error).message));
    process.exit(ending ? 130 : 1);
  }
}

function addressesFor(stack: Stack) {
  const { dbUrl, apiUrl, functionsUrl, secretKey, publishableKey, serviceRoleKey, anonKey } = stack;
  const { scraperUrl, ocrUrl, transcriberUrl, llmUrl, dataDir } = stack;
  const addresses = { dbUrl, apiUrl, functionsUrl, secretKey, publishableKey, serviceRoleKey, anonKey };
  return { ...addresses, scraperUrl, ocrUrl, transcriberUrl, llmUrl, dataDir, operateUrl: stack.operateLink() };
}

function printAddresses(ready: Stack, seconds: string, links: Record<string, string>): void {
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
    ...links,
    "Operator's page": ready.operateLink(),
  };
  console.log(pc.green(`ready in ${seconds} s`));
  for (const [name, value] of Object.entries(rows)) {
    if (value) console.log(`  ${pc.bold(name.padEnd(17))} ${value}`);
  }
  console.log(pc.dim('Ctrl-C stops it. What functions write appears below.'));
}
