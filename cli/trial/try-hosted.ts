// A trial from the question whether to begin to the last thing told. The package @millrace/dev has it, for the command's is full.
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline/promises';
import { CommandError } from '../command-error.ts';
import type { Trial, TrialDeps } from '../commands/trial.ts';
import { type HostedProject, hostedProject } from './hosted-project.ts';
import type { Size } from './measures.ts';
import { contentsOf } from './project-contents.ts';
import { reportText } from './report.ts';
import { type Outcome, runTrial } from './run-trial.ts';
import { hasTrial, takeAway } from './take-away.ts';

const report = 'trial-report.md';
const mostShown = 8;

const whole: Size = { single: 10, burst: 500, idleSeconds: 60, serviceMs: 2000 };
const quick: Size = { single: 2, burst: 10, idleSeconds: 5, serviceMs: 400 };

/** Tries an empty project, and writes the report. */
export const tryHosted: Trial['tryHosted'] = async (deps, request) => {
  const { reference, from } = request;
  const project = hostedProject(reference, { from });
  if (request.clean) return clean(project, deps);
  const size = request.quick ? quick : whole;
  await requireEmpty(project);
  const { major, version } = await versionOf(project);
  await consent(costLines(size, request.branch), request.yes);
  const began = new Date();
  const say = (line: string) => console.error(`trial: ${line}`);
  const outcome = await runTrial({ reference, from, major, size, withBranch: request.branch, say, deps });
  const { findings, left } = outcome;
  const about = { reference, release: deps.manifest.release, postgres: version, began, ended: new Date(), left };
  fs.writeFileSync(path.join(from, report), reportText(findings, about));
  requireWhole(outcome);
  return request.json ? JSON.stringify(findings) : `Everything is taken away again. ${report} has what was measured.`;
};

/** Throws a CommandError that names what the project holds. */
async function requireEmpty(project: HostedProject): Promise<void> {
  const contents = await contentsOf(project);
  if (contents.length === 0) return;
  const others = contents.length > mostShown ? ` and ${contents.length - mostShown} more` : '';
  const way = (await hasTrial(project))
    ? `a trial has left its tables there: \`npx millrace trial --remote=${project.reference} --clean\` takes all of it away.`
    : 'make a new project for it.';
  throw new CommandError(
    `Project ${project.reference} is not empty, and a trial takes an empty one alone. It holds ` +
      `${contents.slice(0, mostShown).join(', ')}${others}: ${way}`,
    3,
  );
}

async function versionOf(project: HostedProject): Promise<{ major: number; version: string }> {
  const [row] = await project.query<{ version: string }>(`select current_setting('server_version') as version`);
  const version = row?.version ?? '';
  const major = Number.parseInt(version, 10);
  if (major >= 15) return { major, version };
  throw new CommandError(
    `Project ${project.reference} has Postgres ${version}, but the engine needs 15 or newer: upgrade it.`,
    3,
  );
}

/** Returns the lines that tell the cost of a trial, by the prices that docs/costs.md names with their date. */
function costLines({ burst }: Size, withBranch: boolean): string[] {
  // Two bursts, each with its page, job, callback, model and what the stages take; the rest is little.
  const calls = 2 * burst * 6 + 1000;
  const money = ((calls / 1e6) * 2).toFixed(2);
  return [
    `It takes at most 15 minutes and some ${calls} invocations of Edge Functions. Free includes 500,000 a month, Pro and Team 2 million; beyond ` +
      `these it is $${money}, billed by the whole million ($2).`,
    ...(withBranch ? ['A preview branch is billed by the hour: $0.01344 for one on Micro.'] : []),
    'Compute of the project is billed as without it.',
  ];
}

/** Tells the cost and asks. Throws a CommandError where the answer is no, or nobody can be asked. */
async function consent(lines: string[], yes: boolean): Promise<void> {
  console.error(lines.join('\n'));
  if (yes) return;
  if (!process.stdin.isTTY) throw new CommandError('Nothing was done, since nobody can be asked here: say --yes.', 2);
  const terminal = readline.createInterface({ input: process.stdin, output: process.stderr });
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')));
  const answer = await Promise.race([terminal.question('Begin? [y/N] ').catch(() => ''), closed]);
  terminal.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError('Nothing was done.');
}

/** Throws a CommandError where a trial was ended early, or has left something. */
function requireWhole({ left, ended }: Outcome): void {
  const why = ended instanceof Error ? ended.message : ended;
  if (left.length > 0) {
    const parts = left.map((line) => `  ${line}`).join('\n');
    throw new CommandError(
      `${why ? `${why}\n` : ''}These could not be taken away:\n${parts}\nRun it again with --clean.`,
      4,
    );
  }
  if (why)
    throw new CommandError(`${why} Everything is taken away again; ${report} has what was measured until then.`, 4);
}

/** Takes away what a trial has left. Throws a CommandError where none has left anything, or not all of it goes. */
async function clean(project: HostedProject, deps: TrialDeps): Promise<string> {
  if (!(await hasTrial(project))) {
    throw new CommandError(
      `Project ${project.reference} has no table public.trial_rows, so no trial has left anything: nothing was done.`,
      3,
    );
  }
  requireWhole({ findings: { measured: {}, untried: [] }, left: await takeAway(project, deps, true) });
  return 'Everything is taken away.';
}
