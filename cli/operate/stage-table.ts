// The stages of pipelines as a table, with the number of rows in each state. Stages that need a person come first.
import pc from 'picocolors';
import type { Overview, PipelineHealth, StageHealth } from '../../operators/answers.ts';
import { byNeed, isBusy, isQuiet, type Listed, sayBackoff, sayWorker } from '../../operators/needs.ts';
import { count, countOf, many, span } from '../../operators/numbers.ts';
import { line } from './say.ts';
import { type Column, table, words } from './table.ts';

/** Of each pipeline, where not all is asked for. */
const mostStages = 12;

const columns: Column[] = [
  { head: 'stage', least: 12 },
  { head: 'ready', right: true },
  { head: 'in work', right: true },
  { head: 'waiting', right: true, goes: 2 },
  { head: 'backoff', right: true, goes: 3 },
  { head: 'late', right: true, goes: 1 },
  { head: 'dead', right: true },
  { head: 'done', right: true, goes: 5 },
  { head: 'oldest', right: true, goes: 4 },
  { head: 'held back', least: 9, goes: 6 },
];

const some = (value: number) => (value > 0 ? count(value) : '');

function cellsOf(stage: StageHealth): string[] {
  const { ready, completed, oldest_age } = stage;
  const someOf = (name: 'waiting' | 'in_backoff' | 'late') => (stage[name] > 0 ? countOf(stage, name) : '');
  return [
    `  ${words(stage.stage)}`,
    countOf(stage, 'ready'),
    countOf(stage, 'started'),
    someOf('waiting'),
    someOf('in_backoff'),
    someOf('late'),
    countOf(stage, 'failed'),
    some(completed),
    oldest_age !== null && ready > 0 ? span(oldest_age * 1000) : '',
    reasonToWait(stage),
  ];
}

/** Returns the reason why a stage's rows do not move: no worker takes them, or an operator's pause, throttle or bypass. */
function reasonToWait({ enabled, paused, throttle, bypass, unattended }: StageHealth): string {
  const why = (word: string, said: { by: string | null; reason: string | null } | null) =>
    [word, said?.by && `by ${said.by}`, said?.reason && `(${said.reason})`].filter(Boolean).join(' ');
  return words(
    [
      unattended && 'nobody takes it up',
      !enabled && why('paused', paused),
      throttle && why('throttled', throttle),
      bypass && why('bypassed', bypass),
    ]
      .filter(Boolean)
      .join(', '),
  );
}

/** Returns a table of the stages, by pipeline; of those with nothing to do one line. */
export function stageLines(
  overview: Overview,
  width: number,
  { all = false, most = Number.POSITIVE_INFINITY }: { all?: boolean; most?: number } = {},
): string[] {
  const listed = byNeed(overview);
  const isLeftOut = (one: Listed) => !all && isQuiet(one);
  const rows: (StageHealth | string)[] = [];
  for (const { pipeline, stages: own } of listed.filter((one) => !isLeftOut(one))) {
    const busy = all || own.length <= mostStages ? own : own.filter(isBusy).slice(0, mostStages);
    rows.push(nameLine(pipeline), ...busy.flatMap((stage) => [stage, ...notesOf(stage, overview.now)]));
    if (busy.length < own.length)
      rows.push(pc.dim(line(`  ${own.length - busy.length} more: npx millrace status ${words(pipeline.pipeline)}`)));
  }
  const quiet = listed.filter(isLeftOut).map(({ pipeline }) => words(pipeline.pipeline));
  const shown = rows.length > most ? rows.slice(0, most - 1) : rows;
  const counted = shown.filter((row) => typeof row !== 'string');
  const [head = '', ...laid] = table(columns, counted.map(cellsOf), width, paint);
  const lines = shown.map((row) => (typeof row === 'string' ? row : (laid.shift() as string)));
  return [
    ...(counted.length > 0 ? [head] : []),
    ...lines,
    ...(shown.length < rows.length
      ? [pc.dim(line(`… ${many(rows.length - shown.length, 'line')} more: npx millrace status PIPELINE`))]
      : []),
    ...(quiet.length > 0 ? [pc.dim(line(`Nothing to do: ${quiet.join(', ')}`))] : []),
  ];
}

/** Under a stage: why attempts are in backoff and when the next is tried; when its own worker was last seen. */
function notesOf(stage: StageHealth, now: string): string[] {
  const backoff = sayBackoff(stage, Date.parse(now));
  const worker = sayWorker(stage, Date.parse(now));
  return [
    ...(backoff ? [pc.yellow(line(`    ${words([backoff, stage.backoff?.message].filter(Boolean).join('. '))}`))] : []),
    ...(worker ? [pc.dim(line(`    ${words(worker)}`))] : []),
  ];
}

const nameLine = ({ pipeline, enabled, paused, open_alerts }: PipelineHealth) =>
  pc.bold(
    line(
      [
        words(pipeline),
        !enabled && `paused${paused?.by ? ` by ${words(paused.by)}` : ''}`,
        open_alerts !== '0' && `▲ ${many(open_alerts, 'alert')}`,
      ]
        .filter(Boolean)
        .join('  '),
    ),
  );

const paint = (text: string, _row: number, head: string) =>
  text.trim() === '0'
    ? pc.dim(text)
    : head === 'dead' || head === 'late'
      ? pc.red(text)
      : head === 'held back'
        ? pc.yellow(text)
        : text;
