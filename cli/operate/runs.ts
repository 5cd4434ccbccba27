// millrace runs and millrace dead: what a filter finds, and what has failed for good, by stage and code.
import pc from 'picocolors';
import type { DeadGroup, ListedRun } from '../../operators/answers.ts';
import { noneAmong } from '../../operators/numbers.ts';
import {
  type Context,
  defined,
  filterOf,
  filterOptions,
  filterUsage,
  numberOf,
  pipelineOf,
  textOf,
} from './context.ts';
import { helpLines } from './help-lines.ts';
import { between, moment } from './moments.ts';
import { definePlaced, placeOf } from './open-place.ts';
import { faultText, line, readLists, say } from './say.ts';
import { type Column, shellWord, table, terminalWidth, words } from './table.ts';

const runColumns: Column[] = [
  { head: 'run', right: true },
  { head: 'pipeline', least: 6, goes: 3 },
  { head: 'row', least: 8 },
  { head: 'status' },
  { head: 'began', goes: 5 },
  { head: 'took', right: true, goes: 4 },
  { head: 'at', least: 8, goes: 2 },
  { head: 'error', least: 16, goes: 1 },
];

/** Returns where a run stands, and why it failed or waits; of one that failed, what failed. */
function summary({ at = [], status }: ListedRun): [string, string] {
  const failed = at.filter(({ state }) => state === 'failed');
  const shown = status === 'failed' && failed.length > 0 ? failed : at;
  const error = shown.find((one) => one.error)?.error;
  return [
    shown.map(({ stage, state }) => (status === 'failed' ? stage : `${stage} ${state}`)).join(', '),
    error ? faultText({ ...error, hint: '' }) : '',
  ];
}

const tones: Record<string, (text: string) => string> = {
  failed: pc.red,
  completed: pc.green,
  cancelled: pc.dim,
  running: pc.cyan,
};

/** Colours the word of a state. */
export const toned = (text: string) => (tones[text.trim()] ?? String)(text);

/** Returns a table of runs; without their pipeline where all are of one that was asked for. */
export function runLines(runs: ListedRun[], width: number, isOfOne = false): string[] {
  const rows = runs.map((run) => [
    String(run.run),
    isOfOne ? '' : words(run.pipeline),
    words(run.label ?? run.entity),
    run.status,
    moment(run.began_at),
    between(run.began_at, run.ended_at),
    ...summary(run).map(words),
  ]);
  return table(runColumns, rows, width, (text, _row, head) => (head === 'status' ? toned(text) : text));
}

/** How long a list that has found nothing yet looks further by itself, in milliseconds. */
const looksFurtherMs = 2000;

export const runs = definePlaced({
  usage: `npx millrace runs [PIPELINE] [--remote[=REF]]
  Runs, the newest first.
${filterUsage}
  --text WORDS (anywhere in label, key, errors or metadata), --limit N (20), --cursor NEXT`,
  words: 1,
  takes: [...filterOptions, 'text', 'limit', 'cursor'],
  place: (context) =>
    placeOf('runs', { ...filterOf(context), text: textOf(context, 'text'), pipeline: pipelineOf(context) }),
  run: listRuns,
});

async function listRuns(context: Context): Promise<0> {
  const query = defined({
    ...filterOf(context),
    pipeline: pipelineOf(context),
    text: textOf(context, 'text'),
    limit: numberOf(context, 'limit') ?? 20,
    cursor: textOf(context, 'cursor'),
  });
  const page = (cursor = query.cursor) =>
    readLists<{ runs: ListedRun[]; next: string | null }>(context.api, 'runs', defined({ ...query, cursor }), 'runs');
  const until = Date.now() + looksFurtherMs;
  let answer = await page();
  let answers = 1;
  for (; answer.runs.length === 0 && answer.next && Date.now() < until; answers++) answer = await page(answer.next);
  const none = answer.next ? `${noneAmong(query.text, answers)}: look further.` : 'No run matches.';
  say(context, answer, () => [
    ...(answer.runs.length > 0 ? runLines(answer.runs, terminalWidth(), query.pipeline !== undefined) : [none]),
    ...moreLine(answer.next),
  ]);
  return 0;
}

/** Returns how to go on with a list that does not end here. */
export const moreLine = (next: string | null) =>
  next ? [pc.dim(line(`There may be more: --cursor ${words(next)}`))] : [];

const deadColumns: Column[] = [
  { head: 'pipeline', least: 8 },
  { head: 'stage', least: 8 },
  { head: 'error', least: 10 },
  { head: 'runs', right: true },
  { head: 'oldest', goes: 2 },
  { head: 'newest', goes: 1 },
];

export const dead = definePlaced({
  usage: `npx millrace dead [PIPELINE] [--remote[=REF]]
  What failed for good, by stage and error.`,
  words: 1,
  takes: ['pipeline'],
  place: (context) => placeOf('dead', { pipeline: pipelineOf(context) }),
  run: listDead,
});

/** Returns the documents' remedy for an error's code; no lines for a code that a pipeline has made up. */
function remedyLines(code: string): string[] {
  const help = helpLines({ code });
  return help.length > 0 ? [line(`${words(code)}:`), ...help] : [];
}

async function listDead(context: Context): Promise<0> {
  const query = defined({ pipeline: pipelineOf(context) });
  const answer = await readLists<{ groups: DeadGroup[] }>(context.api, 'dead_letters', query, 'groups');
  say(context, answer, ({ groups }) => {
    const most = groups.toSorted((a, b) => Number.parseInt(b.runs, 10) - Number.parseInt(a.runs, 10))[0];
    if (!most) return ['No run has failed for good.'];
    const rows = groups.map((group) => [
      words(group.pipeline),
      words(group.stage),
      words(group.error_code),
      group.runs,
      moment(group.oldest),
      moment(group.newest),
    ]);
    const [pipeline, stage, code] = [most.pipeline, most.stage, most.error_code].map(shellWord);
    return [
      ...table(deadColumns, rows, terminalWidth(), (text, _row, head) => (head === 'runs' ? pc.red(text) : text)),
      ...[...new Set(groups.map((group) => group.error_code))].flatMap(remedyLines),
      // To be pasted, so never cut.
      pc.dim(`Look: npx millrace runs ${pipeline} --status failed --stage ${stage} --error ${code}`),
      pc.dim(`Retry: npx millrace retry --pipeline ${pipeline} --stage ${stage} --error ${code}`),
    ];
  });
  return 0;
}
