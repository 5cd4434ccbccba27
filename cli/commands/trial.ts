// millrace trial: what hosted Supabase does, measured on an empty project and taken away again.
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline/promises';
import { defineCommand, remoteOption } from '../define-command.ts';
import { CommandError } from '../project/command-error.ts';
import { readManifest } from '../project/shipped.ts';
import { heldBy } from '../trial/held.ts';
import { type HostedProject, hostedProject } from '../trial/hosted-project.ts';
import type { Size } from '../trial/measures.ts';
import { reportText } from '../trial/report.ts';
import { type Outcome, runTrial } from '../trial/run-trial.ts';
import { hasTrial, takeAway } from '../trial/take-away.ts';

const report = 'trial-report.md';
const mostShown = 8;

const whole: Size = { single: 10, burst: 500, idleSeconds: 60, serviceMs: 2000 };
const quick: Size = { single: 2, burst: 10, idleSeconds: 5, serviceMs: 400 };

export const trial = defineCommand({
  usage: `npx millrace trial --remote=REF [--branch] [--quick] [--yes]
  Deploys a small pipeline of its own to an empty project of yours, measures it, takes everything away again, also after Ctrl-C,
  and writes ${report}: what hosted does beside what the local stack says. At most 15 minutes. Needs \`npx supabase login\`.
  --branch   a preview branch too, which needs a paid plan
  --quick    12 rows in place of 510, and 5 idle seconds in place of 60: a first look in a few minutes
  --yes      without asking
  --clean    takes away what a trial has left that was killed`,
  options: {
    ...remoteOption,
    branch: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    yes: { type: 'boolean', default: false },
    clean: { type: 'boolean', default: false },
  },
  run: async ({ values }) => {
    const reference = referenceIn(values.remote);
    const from = path.resolve(values.workdir);
    const project = hostedProject(reference, { from });
    if (values.clean) return clean(project);
    const size = values.quick ? quick : whole;
    await requireEmpty(project);
    const { major, version } = await versionOf(project);
    await consent(costLines(size, values.branch), values.yes);
    const began = new Date();
    const say = (line: string) => console.error(`trial: ${line}`);
    const outcome = await runTrial({ reference, from, major, size, withBranch: values.branch, say });
    const about = {
      reference,
      release: readManifest().release,
      postgres: version,
      began,
      ended: new Date(),
      left: outcome.left,
    };
    fs.writeFileSync(path.join(from, report), reportText(outcome.findings, about));
    requireWhole(outcome);
    return values.json
      ? JSON.stringify(outcome.findings)
      : `Everything is taken away again. ${report} has what was measured.`;
  },
});

/** Throws a CommandError unless a project is named by its reference: nothing else says which one it is to be. */
function referenceIn(remote: string | undefined): string {
  if (remote && /^[a-z]{20}$/.test(remote)) return remote;
  const said = remote ? `--remote is ${JSON.stringify(remote)}` : '--remote names no project';
  throw new CommandError(
    `${said}, but must be the reference of an empty project, 20 lower-case letters: say --remote=REF.`,
    2,
  );
}

/** Throws a CommandError that names what the project holds. */
async function requireEmpty(project: HostedProject): Promise<void> {
  const held = await heldBy(project);
  if (held.length === 0) return;
  const others = held.length > mostShown ? ` and ${held.length - mostShown} more` : '';
  const way = (await hasTrial(project))
    ? `a trial has left its tables there: \`npx millrace trial --remote=${project.reference} --clean\` takes all of it away.`
    : 'make a new project for it.';
  throw new CommandError(
    `Project ${project.reference} is not empty, and a trial takes an empty one alone. It holds ` +
      `${held.slice(0, mostShown).join(', ')}${others}: ${way}`,
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

/** What a trial costs, by the prices that docs/costs.md names with their date. */
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
async function clean(project: HostedProject): Promise<string> {
  if (!(await hasTrial(project))) {
    throw new CommandError(
      `Project ${project.reference} has no table public.trial_rows, so no trial has left anything: nothing was done.`,
      3,
    );
  }
  requireWhole({ findings: { measured: {}, untried: [] }, left: await takeAway(project, true) });
  return 'Everything is taken away.';
}
