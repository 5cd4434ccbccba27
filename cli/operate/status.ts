// millrace status: which pipelines run, which stage is behind, since when and why.

import type { Series, Touched } from '../../operators/answers.ts';
import { wellOf } from '../../operators/needs.ts';
import { count, dollars, span } from '../../operators/numbers.ts';
import { type Range, rangeOf, ranges, stretchesOf } from '../../operators/ranges.ts';
import { CommandError } from '../command-error.ts';
import { type Context, pipelineOf, textOf } from './context.ts';
import { definePlaced } from './open-place.ts';
import { say } from './say.ts';
import { stageLines } from './stage-table.ts';
import { headLines, readSummary, summaryOf } from './summary.ts';
import { type Column, table, terminalWidth, words } from './table.ts';

export const status = definePlaced({
  usage: `npx millrace status [PIPELINE] [--remote[=REF]]
  The stages with what is where now, what needs a person first; of one pipeline also what the last hour came to.
  --range 24h  in place of the last hour: 24h, 7d or 30d
  --stage S    what made the results of a stage, and what they cost to make again with the stages behind it
  Exit code 1 where not all is well: the engine's sweep does not run, nobody works at a stage, an alert is above
  its bound that nobody has silenced, or doctor finds something.`,
  words: 1,
  takes: ['pipeline', 'range', 'stage'],
  place: (context) => (pipelineOf(context) ? `pipeline/${pipelineOf(context)}` : 'overview'),
  run: tellStatus,
});

async function tellStatus(context: Context): Promise<0 | 1> {
  const pipeline = pipelineOf(context);
  const range = rangeIn(textOf(context, 'range'), pipeline);
  const stage = textOf(context, 'stage');
  if (stage && !pipeline) throw new CommandError('--stage is a stage of one pipeline: name it.', 2);
  const [summary, series, touched] = await Promise.all([
    readSummary(context),
    pipeline ? context.api.read<Series>('series', { pipeline, ...stretchesOf(range, Date.now()).now }) : undefined,
    stage ? context.api.read<Touched>('touched', { pipeline, stage }) : undefined,
  ]);
  const { overview } = summary;
  if (pipeline && !overview.pipelines.some((of) => of.pipeline === pipeline))
    throw new CommandError(`There is no pipeline ${words(pipeline)}.`, 3);
  const shown = summaryOf(summary, pipeline);
  const { ok } = wellOf(shown.overview);
  say(
    context,
    {
      ok,
      ...shown.overview,
      alerts: shown.alerts,
      ...(series && { range: range.name, figures: series }),
      ...(touched && { touched }),
    },
    () => [
      ...headLines(shown),
      ...stageLines(shown.overview, terminalWidth(), { all: Boolean(pipeline) }),
      ...figureLines(series, range),
      ...(touched ? touchedLines(touched) : []),
    ],
  );
  return ok ? 0 : 1;
}

const some = (value: number) => (value > 0 ? count(value) : '');

/** Returns the range that --range names. */
function rangeIn(name: string | undefined, pipeline: string | undefined): Range {
  if (name === undefined) return rangeOf(name);
  if (pipeline === undefined) throw new CommandError('--range is for the figures of one pipeline: name it.', 2);
  const range = ranges.find((one) => one.name === name);
  if (!range)
    throw new CommandError(`--range is ${words(name)}, but must be ${ranges.map((one) => one.name).join(', ')}.`, 2);
  return range;
}

/** Returns the figures of a range at each stage of one pipeline, as a table. */
function figureLines(series: Series | undefined, range: Range): string[] {
  const stages = Object.entries(series?.stages ?? {});
  if (stages.length === 0) return [];
  const rows = stages.map(([stage, f]) => [
    `  ${words(stage)}`,
    count(f.completed),
    some(f.retried),
    some(f.failed),
    span(f.run_p50_ms),
    span(f.run_p95_ms),
    span(f.wait_p95_ms),
    f.cost_usd > 0 ? dollars(f.cost_usd) : '',
    words(
      Object.entries(f.codes ?? {})
        .map(([code, many]) => `${code} ${many}`)
        .join(', '),
    ),
  ]);
  const right = (head: string, goes?: number): Column => ({ head, right: true, goes });
  const heads: Column[] = [
    { head: `last ${range.says}`, least: 12 },
    right('completed'),
    right('retried', 3),
    right('failed', 2),
    right('p50'),
    right('p95'),
    right('wait p95', 4),
    right('spent', 5),
    { head: 'errors', least: 8, goes: 6 },
  ];
  return ['', ...table(heads, rows, terminalWidth())];
}

/** Lists what a change of the stage touches, as a table. */
function touchedLines({ looked, whole, made }: Touched): string[] {
  const rows = made.map(({ model, prompt, release, rows, cost_usd }) => [
    `  ${words(model ?? '')}`,
    words(prompt ?? ''),
    words(release ?? ''),
    count(rows),
    dollars(cost_usd),
  ]);
  const heads: Column[] = [
    { head: 'result made by', least: 12 },
    { head: 'prompt', least: 12 },
    { head: 'release', goes: 1 },
    { head: 'rows', right: true },
    { head: 'again', right: true },
  ];
  const from = `${count(looked)}${whole ? '' : '+'} ${looked === 1 ? 'run' : 'runs'}`;
  return ['', `A change of the stage touches, of ${from}:`, ...table(heads, rows, terminalWidth())];
}
