// A trial from its first push to the last thing taken away. It takes away what it brought even after an error or
// Ctrl-C.
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandError } from '../command-error.ts';
import type { TrialDeps } from '../commands/trial.ts';
import { nameOfUser, type Target } from '../operate/find-target.ts';
import { revealSecretKey } from '../project/ask-supabase.ts';
import { findProject } from '../project/find-project.ts';
import { readHealth } from '../project/read-health.ts';
import { lostRows } from '../sync/lost-rows.ts';
import { awaitBranch } from './await-branch.ts';
import type { Findings } from './expected.ts';
import { type HostedProject, hostedProject } from './hosted-project.ts';
import {
  type Found,
  type Measuring,
  measureBranchRow,
  measureBurst,
  measureFirstRow,
  measureIdle,
  measureKillByCpu,
  measureLostWakeUp,
  measurePause,
  measureSingleRows,
  measureUpgrade,
  type Size,
} from './measures.ts';
import { takeAway, trialBranch } from './take-away.ts';
import { changeTrial, makeTrialFolder } from './trial-folder.ts';

/** After so many minutes a trial begins nothing more and takes away what it brought, which takes the rest of the 15. */
const measuringMinutes = 12;

export interface Trial {
  reference: string;
  /** The folder whose supabase CLI runs. */
  from: string;
  /** The major version of the project's Postgres. */
  major: number;
  size: Size;
  withBranch: boolean;
  /** Prints a line about what happens. */
  say(line: string): void;
  deps: TrialDeps;
}

/** The outcome of a trial: its findings, the parts that it left, and the error that ended it early. */
export interface Outcome {
  findings: Findings;
  left: string[];
  ended?: unknown;
}

/** Runs a trial on an empty project. Resolves when everything is taken away, also where a signal or an error ended it. */
export async function runTrial(trial: Trial): Promise<Outcome> {
  const findings: Findings = { measured: {}, untried: [] };
  const interruption = hearSignals(trial.say);
  const signal = AbortSignal.any([interruption.signal, AbortSignal.timeout(measuringMinutes * 60_000)]);
  const root = await makeTrialFolder(trial.major, trial.deps);
  const state = { mayHaveBranch: false };
  let ended: unknown;
  try {
    await measureAll({ trial, root, signal, findings, state });
  } catch (error) {
    ended = signal.aborted ? whyAborted(signal) : error;
  }
  trial.say('takes everything away');
  // No signal ends the cleaning: whatever stays would cost the project's owner.
  const left = await takeAway(hostedProject(trial.reference, { from: trial.from }), trial.deps, state.mayHaveBranch);
  fs.rmSync(root, { recursive: true, force: true });
  interruption.end();
  return { findings, left, ended };
}

const whyAborted = ({ reason }: AbortSignal) =>
  reason instanceof CommandError
    ? reason
    : new CommandError(`The trial took more than ${measuringMinutes} minutes and was ended.`, 4);

/** Ends the trial at the first Ctrl-C. A later one changes nothing, as long as it takes away what it brought. */
function hearSignals(say: (line: string) => void) {
  const controller = new AbortController();
  const hear = () => {
    if (controller.signal.aborted) return say('is taking everything away: this ends by itself');
    controller.abort(new CommandError('The trial was interrupted.'));
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  for (const name of signals) process.on(name, hear);
  return {
    signal: controller.signal,
    end() {
      for (const name of signals) process.off(name, hear);
    },
  };
}

interface TrialRun {
  trial: Trial;
  root: string;
  signal: AbortSignal;
  findings: Findings;
  state: { mayHaveBranch: boolean };
}

async function measureAll(run: TrialRun): Promise<void> {
  const { trial, root, signal, findings } = run;
  const { reference, from, say, size } = trial;
  const project = hostedProject(reference, { from, signal });
  const target = await deployed(project, run);
  const measuring: Measuring = { target, size, signal, deps: trial.deps };
  const steps: [string, () => Promise<Found>][] = [
    ['a first row', () => measureFirstRow(measuring)],
    [`${size.single} rows one by one`, () => measureSingleRows(measuring)],
    [`${size.burst} rows at once`, () => measureBurst(measuring)],
    ['a function that uses up its CPU', () => measureKillByCpu(measuring)],
    ['a lost wake-up', () => measureLostWakeUp(measuring)],
    ['an upgrade under load', () => measureUpgrade(measuring, () => upgrade(project, root))],
    ['a pause', () => measurePause(measuring)],
    [`${size.idleSeconds} s with nothing to do`, () => measureIdle(measuring)],
  ];
  if (trial.withBranch) steps.push(['a preview branch', () => onBranch(project, measuring, run)]);
  else findings.untried.push({ what: 'a preview branch', why: 'say --branch; it needs a paid plan' });
  findings.untried.push({ what: 'the pause of a whole project', why: 'no command of the supabase CLI pauses one' });
  for (const [what, step] of steps) {
    signal.throwIfAborted();
    say(what);
    await step().then(
      (found) => void Object.assign(findings.measured, found),
      (error: Error) => {
        if (signal.aborted) throw error;
        findings.untried.push({ what, why: error.message });
      },
    );
  }
}

/** Pushes, sets the settings, deploys and connects. Resolves to how the project is reached. */
async function deployed(project: HostedProject, { trial, root }: Pick<TrialRun, 'trial' | 'root'>): Promise<Target> {
  const url = `https://${project.reference}.supabase.co`;
  trial.say(`pushes to ${project.reference}`);
  await project.push(root);
  await project.setSecrets(settings(url, trial.size));
  trial.say('deploys its functions');
  await project.deploy(root);
  const headers = { apikey: await revealSecretKey(project.reference, trial.from) };
  trial.say('connects');
  await trial.deps.connectTarget(url, headers);
  return { url, headers, operator: nameOfUser() };
}

/** Returns the settings by which the stages call the trial's own service and model. */
function settings(url: string, { serviceMs }: Size): Record<string, string> {
  const token = randomBytes(24).toString('hex');
  return {
    TRIAL_SERVICE_URL: `${url}/functions/v1/trial-service`,
    TRIAL_SERVICE_AUTH_TOKEN: token,
    TRIAL_SERVICE_MS: String(serviceMs),
    LLM_URL: `${url}/functions/v1/trial-service/v1`,
    LLM_AUTH_TOKEN: token,
    LLM_MODEL: 'trial',
    WEBHOOK_SECRET: `whsec_${randomBytes(32).toString('base64')}`,
  };
}

/** The next version, while rows are under way: first the definition, then the function, as docs/upgrading.md says. */
async function upgrade(project: HostedProject, root: string): Promise<void> {
  await changeTrial(root);
  await project.push(root);
  await project.deploy(root, 'trial-read');
}

/** A preview branch that gets what the project has, and one row. */
async function onBranch(project: HostedProject, measuring: Measuring, run: TrialRun): Promise<Found> {
  run.state.mayHaveBranch = true;
  const reference = await project.createBranch(trialBranch);
  const { from, say } = run.trial;
  const { signal } = measuring;
  const branch = hostedProject(reference, { from, signal });
  await awaitBranch(branch, { say, now: Date.now, pause: (ms) => sleep(ms, undefined, { signal }) });
  const target = await deployed(branch, run);
  // A branch without a Git branch gets the schema and no rows, so the engine's own are restored.
  const lost = lostRows(findProject(run.root), await readHealth(target.url, target.headers));
  if (lost) await branch.query(lost.sql);
  return measureBranchRow({ ...measuring, target });
}
