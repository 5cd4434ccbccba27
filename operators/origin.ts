// Says what made the results of a run's stages: an attempt, its model, prompt and release, a person, children or an earlier run.
import type { Run } from './answers.ts';
import { dollars } from './numbers.ts';

type Stage = Run['stages'][number];

const columns = /_(?:status|job_id|result|error|retry_count|started_at|completed_at)$/;

/** The stage of this name, or the one that a column such as `score_result` shows. */
export const stageOf = ({ stages }: Run, named: string): Stage | undefined =>
  [named, named.replace(columns, '')].map((name) => stages.find(({ stage }) => stage === name)).find(Boolean);

/** Returns a stage with all that went into its result, in the order of the run. */
export function upstreamOf({ stages }: Run, last: Stage): Stage[] {
  const names = new Set([last.stage]);
  const found = stages.toReversed().filter(({ stage, needs }) => {
    if (names.has(stage)) for (const need of needs) names.add(need);
    return names.has(stage);
  });
  return found.toReversed();
}

/** Such as `model gpt-6-luna, prompt score-1@4f1d09ab, release 1f2e, $0.20, attempt 12`; empty without a result. */
export function sayOrigin({ run, journal }: Run, { stage, made_by: by }: Stage): string {
  if (!by) return '';
  const edit = by.service === 'by_hand' && journal.find((of) => of.stage === stage && /edit|complete/.test(of.verb));
  return [
    makerOf(by),
    edit && `${edit.verb} by ${edit.by ?? 'an unknown person'}${edit.reason ? ` (${edit.reason})` : ''}`,
    by.prompt && `prompt ${by.prompt}`,
    by.release && `release ${by.release}`,
    by.cost_usd !== undefined && by.cost_usd !== null && dollars(Number(by.cost_usd)),
    `attempt ${by.attempt}${by.run === run ? '' : ` of run ${by.run}`}`,
  ]
    .filter(Boolean)
    .join(', ');
}

function makerOf(by: NonNullable<Stage['made_by']>): string {
  if (by.taken_from) return 'an earlier run, which is deleted';
  if (by.service === 'by_hand') return 'a person, by hand';
  if (by.service === 'children') return 'its children';
  if (by.service === 'decision') return 'a decision';
  if (by.cached) return `a former answer of ${by.model}`;
  if (by.model) return `model ${by.model}`;
  return by.service ? `a job at ${by.service}` : 'code';
}
