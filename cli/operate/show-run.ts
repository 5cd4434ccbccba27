// millrace show: one run, where it stands and why, its attempts, children and what people did to it; or one attempt's result.
import { inspect } from 'node:util';
import pc from 'picocolors';
import type { Attempt, Fault, Payload, Run, WholeAttempt } from '../../operators/answers.ts';
import { copiesOf, saidOfCopy } from '../../operators/copies.ts';
import { costOf, many, span } from '../../operators/numbers.ts';
import { sayOrigin, stageOf, upstreamOf } from '../../operators/origin.ts';
import { visible } from '../../operators/visible.ts';
import { CommandError } from '../command-error.ts';
import { asCommands } from '../project/as-commands.ts';
import { type Context, numberIn, numberOf } from './context.ts';
import { helpLines } from './help-lines.ts';
import { journalRows } from './journal.ts';
import { between, moment } from './moments.ts';
import { definePlaced } from './open-place.ts';
import { toned } from './runs.ts';
import { faultText, line, readLists, say } from './say.ts';
import { type RunWithWaits, withWaits } from './say-waiting.ts';
import { keepDrawing } from './screen.ts';
import { type Column, table, terminalWidth, words, wrap } from './table.ts';

const mostAttempts = 30;

export const show = definePlaced({
  usage: `npx millrace show RUN [--remote[=REF]]
  Where a run stands and why, its attempts, its children and what people did to it.
  --attempt N  in place of RUN: one attempt, with its error, log lines and result in full
  --origin STAGE  what made the stage's result and all that went into it; a column such as STAGE_result names it, too
  --watch  draws the run or the attempt anew in place until it ends, or ctrl-C`,
  words: 1,
  takes: ['attempt', 'origin', 'watch'],
  place: ({ words: [run] }) => (run === undefined ? undefined : `run/${numberIn(run, 'RUN')}`),
  run: showRun,
});

async function showRun(context: Context): Promise<0> {
  const attempt = numberOf(context, 'attempt');
  if (attempt !== undefined) return showAttempt(context, attempt);
  const [word] = context.words;
  if (word === undefined) throw new CommandError('Name a run, or --attempt N.', 2);
  const of = { run: numberIn(word, 'RUN') };
  const read = async () =>
    withWaits(context.api, await readLists<Run>(context.api, 'run', of, 'stages', 'attempts', 'children', 'journal'));
  const { origin } = context.values;
  if (typeof origin === 'string') return showOrigin(context, await read(), origin);
  return showUntilOver(context, read, runLines, ({ status }) => status !== 'running');
}

/** Prints what was read; with --watch it draws that anew until it is over. */
async function showUntilOver<Of extends object>(
  context: Context,
  read: () => Promise<Of>,
  linesOf: (found: Of) => string[],
  isOver: (found: Of) => boolean,
): Promise<0> {
  let found = await read();
  if (context.values.watch) {
    if (!process.stdout.isTTY || context.json)
      throw new CommandError('--watch draws at a terminal: ask millrace show RUN --json.', 2);
    let at = new Date().toISOString();
    const look = async () => {
      found = await read();
      at = new Date().toISOString();
    };
    const frame = () => linesOf(found).slice(0, (process.stdout.rows ?? 24) - 1);
    await keepDrawing({ look, frame, at: () => at, isOver: () => isOver(found) });
  }
  say(context, found, linesOf);
  return 0;
}

function showOrigin(context: Context, run: Run, named: string): 0 {
  const last = stageOf(run, named);
  if (!last) {
    const known = run.stages.map(({ stage }) => stage).join(', ');
    throw new CommandError(`Run ${run.run} has no stage ${visible(named)}. Its stages: ${known}.`, 2);
  }
  const columns: Column[] = [
    { head: 'stage', least: 10 },
    { head: 'state' },
    { head: 'needs', least: 8, goes: 1 },
    { head: 'made by', least: 16, wraps: true },
  ];
  say(context, { run: run.run, stages: upstreamOf(run, last) }, ({ stages }) => {
    const rows = stages.map((of) => [of.stage, of.state, of.needs.join(', '), sayOrigin(run, of)].map(words));
    return table(columns, rows, terminalWidth(), (text, _row, head) => (head === 'state' ? toned(text) : text));
  });
  return 0;
}

function runLines(run: RunWithWaits): string[] {
  return [
    ...summary(run),
    '',
    ...stageLines(run),
    ...(run.children.length > 0 ? ['', ...childLines(run)] : []),
    '',
    ...attemptLines(run.attempts),
    ...(run.journal.length > 0 ? ['', ...journalRows(run.journal, terminalWidth())] : []),
  ];
}

function summary(run: RunWithWaits): string[] {
  const took = `${run.ended_at ? 'took' : 'runs for'} ${between(run.began_at, run.ended_at)}`;
  const cost = costOf(run) && ` · ${costOf(run)}`;
  const faults = (run.at ?? []).filter(({ error }) => error);
  const byId = new Map(run.attempts.map((of) => [of.attempt, of]));
  /** Returns the log of the try that failed: of a queued retry, its parent's. */
  const logOf = (attempt: number) => {
    const { log, parent, deleted_after: days } = byId.get(attempt) ?? {};
    return log ?? (days ? `deleted after ${many(days, 'day')}` : byId.get(parent ?? 0)?.log);
  };
  return [
    pc.bold(line(`run ${run.run} of ${words(run.pipeline)}: ${run.status}`)),
    line(`row ${words(run.entity)} of ${words(run.table?.name)}${run.label ? `: ${words(run.label)}` : ''}`),
    line(
      `began ${moment(run.began_at)} · ${took} · version ${run.version}${cost}${run.parent ? ` · child of run ${run.parent}` : ''}`,
    ),
    ...(run.copy_of ? [line(`a copy of run ${run.copy_of}, ${saidOfCopy(run)}`)] : []),
    ...copiesOf(run).map((copy) => line(`run ${copy} is a copy of it`)),
    ...faults.flatMap(({ stage, attempt, error = {} }) => [
      ...wrap(`${words(stage)}: ${told({ ...error, hint: '' })}`, terminalWidth()).map(pc.red),
      ...helpLines(error),
      ...logLines(logOf(attempt)),
    ]),
    ...run.attempts.flatMap(({ stage, doubts, superseded }) =>
      doubts && !superseded ? wrap(`⚠ ${words(stage)}: ${words(doubts)}`, terminalWidth()).map(pc.yellow) : [],
    ),
    ...run.waits.flatMap((text) => wrap(words(text), terminalWidth())),
    ...(run.unattended ?? []).flatMap(({ stage, why, remedy }) => [
      ...wrap(`▲ ${words(stage)}: ${words(why)}`, terminalWidth()).map(pc.red),
      ...wrap(words(asCommands(remedy)), terminalWidth() - 2).map((text) => `  ${text}`),
    ]),
    ...(run.status === 'failed' ? [pc.dim(`Retry: npx millrace retry ${run.run}`)] : []),
  ];
}

/** Returns the last lines of an attempt's log, each in a line of its own. */
const logLines = (log: string | undefined) =>
  log ? ['last log lines:', ...log.split('\n').map((text) => pc.dim(`  ${line(visible(text))}`))] : [];

const told = (error: Fault | undefined) => (error ? words(faultText(error)) : '');

function stageLines({ stages }: Run): string[] {
  const columns: Column[] = [{ head: 'stage', least: 10 }, { head: 'state' }, { head: 'needs', least: 8, goes: 1 }];
  const rows = stages.map(({ stage, state, needs }) => [words(stage), words(state), words(needs.join(', '))]);
  return table(columns, rows, terminalWidth(), (text, _row, head) => (head === 'state' ? toned(text) : text));
}

function childLines({ children }: Run): string[] {
  return children.map((of) =>
    line(
      `${words(of.stage)}: ${many(of.spawned, 'child', 'children')} in ${words(of.pipeline)}, ${of.completed} completed, ${of.failed} failed, ` +
        `${of.cancelled} cancelled`,
    ),
  );
}

const attemptColumns: Column[] = [
  { head: 'attempt', right: true },
  { head: 'stage', least: 8 },
  { head: 'try', right: true, goes: 3 },
  { head: 'state' },
  { head: 'queued', goes: 4 },
  { head: 'waited', right: true, goes: 2 },
  { head: 'took', right: true, goes: 1 },
  { head: 'error', least: 16, goes: 0, wraps: true },
];

/** Returns how long something took, which may not have begun or ended. */
const took = (from: string | undefined, to: string | undefined) =>
  from && to ? span(Date.parse(to) - Date.parse(from)) : '';

function attemptLines(attempts: Attempt[]): string[] {
  const shown = attempts.slice(-mostAttempts);
  const rows = shown.map((of) => [
    String(of.attempt),
    words(of.stage),
    String(of.number),
    of.superseded ? 'superseded' : of.state,
    moment(of.queued_at),
    took(of.queued_at, of.started_at),
    took(of.started_at, of.ended_at),
    told(of.error),
  ]);
  return [
    ...(shown.length < attempts.length
      ? [pc.dim(`The newest ${mostAttempts} of ${attempts.length} attempts; --json has them all.`)]
      : []),
    ...table(attemptColumns, rows, terminalWidth(), (text, _row, head) => (head === 'state' ? toned(text) : text)),
  ];
}

const showAttempt = (context: Context, attempt: number): Promise<0> =>
  showUntilOver(
    context,
    () => context.api.read<WholeAttempt>('attempt', { attempt }),
    wholeLines,
    ({ ended_at }) => ended_at !== undefined,
  );

const wholeLines = ({ attempt, stage, state, error, log, output, payloads, deleted_after: days }: WholeAttempt) => [
  pc.bold(line(`attempt ${attempt} at ${words(stage)}: ${state}`)),
  ...(error ? Object.entries(error).map(([name, text]) => `${name}: ${visible(String(text).slice(0, 4000))}`) : []),
  ...logLines(log),
  ...(days ? [`Its result and log were deleted after ${many(days, 'day')}.`] : []),
  ...(!payloads ? ['You do not see payloads here.'] : days ? [] : payloadLines(output)),
];

/** Returns a result as a tree: six levels, and of each text and list the beginning; --json has it whole. */
function payloadLines(output: Payload | null): string[] {
  if (!output) return ['It has no result.'];
  if (output.cut !== undefined) {
    return [visible(output.cut.slice(0, 4000)), pc.dim(`… the beginning of ${output.bytes} bytes`)];
  }
  const tree = inspect(output.value, { depth: 6, maxArrayLength: 50, maxStringLength: 1000, breakLength: 100 });
  return [visible(tree.slice(0, 20_000))];
}
