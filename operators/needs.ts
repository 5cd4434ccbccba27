// Which pipelines and stages need a person, and whether the engine does: the page and the command line say the same.

import type { Alert, Overview, PipelineHealth, StageHealth, Well } from './answers.ts';
import { age, count, countOf } from './numbers.ts';

export interface Listed {
  pipeline: PipelineHealth;
  stages: StageHealth[];
}

/** Returns whether a stage has something to do, or a person has paused, throttled or bypassed it. */
export const isBusy = (s: StageHealth) =>
  s.ready + s.in_backoff + s.started + s.waiting + s.failed + s.late > 0 || !s.enabled || !!s.throttle || !!s.bypass;

/**
 * Says why attempts of a stage are in backoff and when the next is tried, at a moment in milliseconds as the database counts
 * them: `4 in backoff: rate_limited 12 s ago; the next try in 40 s`. Undefined where none is, or the project is of an earlier release.
 */
export function sayBackoff(stage: StageHealth, nowMs: number): string | undefined {
  if (!stage.backoff) return undefined;
  const { code, at, next_at } = stage.backoff;
  const leftMs = Date.parse(next_at) - nowMs;
  const told = [
    code && (at ? `${code} ${age(nowMs - Date.parse(at))} ago` : code),
    leftMs > 0 ? `the next try in ${age(leftMs)}` : 'the next try is due',
  ].filter(Boolean);
  return `${countOf(stage, 'in_backoff')} in backoff: ${told.join('; ')}`;
}

/**
 * Says when a process of the project's own last asked for work at a stage, and its release: `worker r7 last seen 3 s ago`. Undefined for
 * a stage that an Edge Function runs.
 */
export function sayWorker({ worker }: StageHealth, nowMs: number): string | undefined {
  if (!worker) return undefined;
  if (!worker.seen_at) return 'no worker has asked for work yet';
  const named = ['worker', worker.release].filter(Boolean).join(' ');
  return `${named} last seen ${age(nowMs - Date.parse(worker.seen_at))} ago`;
}

/** Returns whether a pipeline has nothing to do, no open alert, and no stage that a person has paused, throttled or bypassed. */
export const isQuiet = ({ pipeline, stages }: Listed) =>
  pipeline.enabled && pipeline.open_alerts === '0' && !stages.some(isBusy);

/** Sorts pipelines and stages: alerts first, then unattended, late, dead and paused stages, then those with most to do. */
export function byNeed({ pipelines, stages }: { pipelines: PipelineHealth[]; stages: StageHealth[] }): Listed[] {
  // Each pipeline's stages are found and summed once: an overview may hold a thousand.
  const of = new Map<string, StageHealth[]>(pipelines.map(({ pipeline }) => [pipeline, []]));
  for (const stage of stages) of.get(stage.pipeline)?.push(stage);
  return pipelines
    .map((pipeline) => ({ pipeline, stages: of.get(pipeline.pipeline) ?? [] }))
    .map((listed) => ({ listed, needs: needsOf(listed) }))
    .sort((a, b) => a.needs.reduce((order, value, place) => order || (b.needs[place] ?? 0) - value, 0))
    .map(({ listed }) => listed);
}

function needsOf({ pipeline: { open_alerts, enabled }, stages }: Listed): number[] {
  const sum = (what: (stage: StageHealth) => number) => stages.reduce((all, stage) => all + what(stage), 0);
  return [
    Number.parseInt(open_alerts.replaceAll(',', ''), 10),
    sum(({ unattended }) => (unattended ? 1 : 0)),
    sum(({ late }) => late),
    sum(({ failed }) => failed),
    enabled ? 0 : 1,
    sum(({ enabled: isOn, throttle, bypass }) => (!isOn || throttle || bypass ? 1 : 0)),
    sum(({ ready, started, waiting, in_backoff }) => ready + started + waiting + in_backoff),
  ];
}

/** Returns whether all is well: what the database says, or that it is of a release which does not say it. */
export const wellOf = ({ well }: Overview): Well =>
  well ?? {
    ok: false,
    faults: [
      {
        kind: 'release',
        what: 'the project is of another release than this page or command',
        detail: 'millrace_overview does not say whether all is well: compare them with npx millrace doctor',
      },
    ],
    more: 0,
    dead_last_day: '0',
  };

/** Why an alert is open though all is well: `1 open alert is silenced or no longer above its bound`. Undefined where none is. */
export function sayQuietAlerts({ quiet_alerts: quiet = 0 }: Well): string | undefined {
  if (quiet === 0) return undefined;
  return quiet === 1
    ? '1 open alert is silenced or no longer above its bound'
    : `${count(quiet)} open alerts are silenced or no longer above their bounds`;
}

/** A sweep that ran longer ago than this is one that does not run; an engine that is younger may not have swept yet. */
const boundMs = 60_000;

/** When the sweep ran last, whether it has stopped, and whether it has yet to run for the first time. */
export interface Sweep {
  at: string | null;
  is: 'well' | 'due' | 'silent';
}

/** Returns the state of the sweep at a time of the database's clock, in epoch milliseconds. */
export function sweepOf({ last_sweep_at, installed_at }: Overview, nowMs: number): Sweep {
  // PostgreSQL has a time before all others, which JavaScript does not.
  const at = last_sweep_at !== null && Number.isFinite(Date.parse(last_sweep_at)) ? last_sweep_at : null;
  const isRecent = (time: string | null) => time !== null && nowMs - Date.parse(time) < boundMs;
  if (at !== null) return { at, is: isRecent(at) ? 'well' : 'silent' };
  return { at, is: isRecent(installed_at ?? null) ? 'due' : 'silent' };
}

/** Puts the engine's own alerts first: the others may follow from them. */
export const engineFirst = (alerts: Alert[]): Alert[] =>
  alerts.toSorted((a, b) => Number(b.kind === 'engine') - Number(a.kind === 'engine'));
