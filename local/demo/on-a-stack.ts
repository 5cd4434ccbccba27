// The frame of every demo: starts a stack of its own, and prints the totals and the next steps at the end.
import path from 'node:path';
import pg from 'pg';
import pc from 'picocolors';
import { noteRunningStack } from '../platform/running-stack.ts';
import { settingWarnings } from '../platform/settings.ts';
import { type Stack, startStack } from '../platform/stack.ts';
import { startServices } from '../services/start-services.ts';
import { fitLine } from './fit-line.ts';
import { functionTroubles } from './function-troubles.ts';
import { type NextSteps, printNextSteps } from './next-steps.ts';
import { printFindings, printInvariants, printTotals, type Subject } from './report.ts';
import type { DemoSettings } from './settings.ts';
import { type NewErrors, newErrors } from './stage-errors.ts';
import type { Watching } from './watch-progress.ts';
import { wrapText } from './wrap-text.ts';

let columns = Number.POSITIVE_INFINITY;
/** Breaks lines that are wider from now on. */
export const fitTo = (most: number) => {
  columns = most;
};
export const print = (text: string) => {
  for (const line of text.split('\n')) for (const part of fitLine(line, columns)) console.log(part);
};
/** Breaks the lines about new errors to the columns, each behind its time. */
const fitted = (errors: NewErrors) => async () => {
  const behindTime = 11;
  return (await errors()).map((text) => wrapText(text, columns - behindTime).join(`\n${' '.repeat(behindTime)}`));
};
export const heading = (text: string) => print(`\n${pc.bold(text)}`);

export interface Demo {
  title: string;
  settings: DemoSettings;
  /** Whether to stay up when it is finished. */
  keep: boolean;
  /** Aborted when the user ends the demo. */
  ending: AbortSignal;
}

/** The outcome of a demo's own part. */
export interface Outcome {
  /** The subject of the totals, such as runs. */
  subject: Subject;
  /** Whether anything failed that should not have. */
  failed: boolean;
  /** A last sentence about it. */
  complaint?: string;
  nextSteps: NextSteps;
}

/**
 * Runs `show` on a stack of its own, which it ends afterwards; `show` may leave off once the user ends the demo. Resolves
 * to the exit code.
 */
export async function onAStack(
  { title, settings, keep, ending }: Demo,
  show: (stack: Stack, watching: Watching) => Promise<Outcome | undefined>,
): Promise<number> {
  const cleanUp: (() => Promise<unknown>)[] = [];
  const troubles = functionTroubles();
  try {
    heading(title);
    for (const line of settings.modelNote) print(pc.dim(`  ${line}`));
    for (const line of [...settings.warnings, ...settingWarnings()]) print(pc.yellow(`  ${line}`));

    heading('1. Starting the stack');
    const started = Date.now();
    const stack = await startStack({
      env: settings.env,
      services: startServices,
      // The data of the stack goes when the demo ends.
      fsync: false,
      progress: (message) => print(`  ${message}`),
      log: troubles.add,
    });
    cleanUp.push(() => stack.stop());
    print(`  ready in ${((Date.now() - started) / 1000).toFixed(1)} s`);
    if (ending.aborted) return 130;
    const client = new pg.Client({ connectionString: stack.dbUrl });
    client.on('error', () => {});
    await client.connect();
    cleanUp.push(() => client.end());

    const outcome = await show(stack, {
      client,
      newErrors: fitted(newErrors(client, settings.env)),
      limitMs: settings.limitMs,
      signal: ending,
      out: process.stdout,
    });
    if (!outcome || ending.aborted) return 130;

    heading('In total');
    await printTotals(client, outcome.subject, print);
    const violations = await printInvariants(client, print);
    await printFindings(client, print);
    const failed = outcome.failed || violations > 0;
    if (outcome.complaint) print(pc.red(`\n${outcome.complaint}`));
    if (failed && troubles.lines().length > 0) {
      heading('What the functions warned of last');
      for (const line of troubles.lines()) print(pc.dim(`  ${line}`));
      if (troubles.lines().some((line) => line.includes('the platform ends this function'))) {
        print('  That the platform ends a function is normal with large files, and loses nothing: what the function');
        print('  held went back to the queue, and the next one took it up.');
      }
    }
    printNextSteps(outcome.nextSteps, keep ? stack : undefined, print);
    if (keep && !ending.aborted) {
      const forget = noteRunningStack(path.join(import.meta.dirname, '..', '..'), stack);
      cleanUp.push(async () => forget());
      // Prints the functions' log: doctor() tells people to look for it at this terminal.
      troubles.follow((line) => print(pc.dim(line)));
      await new Promise((resolve) => ending.addEventListener('abort', resolve, { once: true }));
    }
    return failed ? 1 : 0;
  } finally {
    if (keep || ending.aborted) print(pc.dim('\nstopping …'));
    for (const step of cleanUp.reverse()) await step();
  }
}
