// How much CPU a function takes from its process's start until it listens: of this checkout, and of another one beside it.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ProcessOptions, startFunctionProcess } from '../../../local/platform/functions/function-process.ts';
import { hostedLimits } from '../../../local/platform/functions/limits.ts';
import { median, type Result, round } from '../results.ts';

const here = path.join(import.meta.dirname, '..', '..', '..');
const rounds = 15;
// A function of each kind, and Deno itself with a function that does nothing.
const functions = {
  nothing: path.join(import.meta.dirname, 'nothing.ts'),
  plain: 'leads-scrape',
  model: 'leads-intel',
  chunking: 'documents-chunking',
  millrace: 'millrace',
};

/** A checkout of the project, with the host of functions that it brings along. */
interface Checkout {
  name: string;
  folder: string;
  start: typeof startFunctionProcess;
}

/**
 * Measures each function in turn, round by round, so that a machine that slows down slows all of them. `beside` is the folder of
 * a checkout of another commit, with its node_modules.
 */
export async function coldStart(beside: string | undefined, progress: (message: string) => void): Promise<Result[]> {
  const checkouts = [await checkout('millrace', here)];
  if (beside !== undefined) checkouts.push(await checkout('beside', path.resolve(beside)));
  const measured = new Map<string, number[]>();
  // The first round fills the caches of what Deno has compiled.
  for (let turn = 0; turn <= rounds; turn++) {
    progress(`cold-start: round ${turn} of ${rounds}`);
    for (const [variant, name] of Object.entries(functions)) {
      for (const from of checkouts) {
        const milliseconds = await bootCpu(from, name);
        const key = JSON.stringify([from.name, variant]);
        if (turn > 0) measured.set(key, [...(measured.get(key) ?? []), milliseconds]);
      }
    }
  }
  return [...measured].map(([key, values]) => {
    const [engine, variant] = JSON.parse(key) as [string, string];
    return { work: 'cold-start', engine, variant, value: round(median(values)), unit: 'ms of CPU' };
  });
}

async function checkout(name: string, folder: string): Promise<Checkout> {
  // An older commit has it one folder higher.
  const places = ['local/platform/functions', 'local/functions'].map((place) => path.join(folder, place));
  const place = places.find((candidate) => fs.existsSync(candidate)) ?? '';
  const host = path.join(place, 'function-process.ts');
  const { startFunctionProcess: start } = await import(pathToFileURL(host).href);
  return { name, folder, start };
}

/** Starts a function and ends it as soon as it listens. Resolves to the CPU time that took. */
async function bootCpu({ folder, start }: Checkout, name: string): Promise<number> {
  const functionsFolder = path.join(folder, 'supabase', 'functions');
  const options: ProcessOptions = {
    entry: path.isAbsolute(name) ? name : path.join(functionsFolder, name, 'index.ts'),
    importMap: path.join(functionsFolder, 'deno.json'),
    folder: functionsFolder,
    env: { SUPABASE_URL: 'http://127.0.0.1:1', SUPABASE_SECRET_KEYS: '{"default":"sb_secret_of_nobody"}' },
    limits: hostedLimits,
    log: (line) => console.error(`cold-start: ${name}: ${line}`),
  };
  const started = start(options);
  try {
    await started.listening;
    return cpuOf(started.pid);
  } finally {
    await started.kill();
  }
}

/** The CPU time of all threads of a process in milliseconds, as the scheduler counts it. */
function cpuOf(pid: number): number {
  const threads = `/proc/${pid}/task`;
  const nanoseconds = fs
    .readdirSync(threads)
    .map((id) => Number(fs.readFileSync(path.join(threads, id, 'schedstat'), 'utf8').split(' ')[0]));
  return nanoseconds.reduce((sum, spent) => sum + spent, 0) / 1e6;
}
