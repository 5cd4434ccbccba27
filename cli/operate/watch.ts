// millrace watch: how things stand, drawn anew in place every few seconds, until ctrl-C.
import pc from 'picocolors';
import type { ListedRun, Overview } from '../../operators/answers.ts';
import { count } from '../../operators/numbers.ts';
import { CommandError } from '../command-error.ts';
import { type Context, defined, defineOperate, pipelineOf } from './context.ts';
import { moment } from './moments.ts';
import { runLines } from './runs.ts';
import { line, readLists } from './say.ts';
import { keepDrawing } from './screen.ts';
import { stageLines } from './stage-table.ts';
import { headLines, readSummary, type Summary, summaryOf } from './summary.ts';
import { words } from './table.ts';

/** Over how long rates are reckoned. */
const rateSpanMs = 60_000;
const shownErrors = 5;

interface Sample {
  at: number;
  completed: Map<string, number>;
}

interface Seen extends Summary {
  failed: ListedRun[];
  /** Whether one pipeline was asked for. */
  isOfOne: boolean;
}

async function look(context: Context): Promise<Seen> {
  const pipeline = pipelineOf(context);
  const query = defined({ pipeline, status: 'failed', limit: shownErrors });
  const [summary, { runs }] = await Promise.all([
    readSummary(context),
    readLists<{ runs: ListedRun[] }>(context.api, 'runs', query, 'runs'),
  ]);
  return { ...summaryOf(summary, pipeline), failed: runs, isOfOne: pipeline !== undefined };
}

/** Returns how many attempts a pipeline completes a minute, from what its stages had completed at two times. */
function rateLines(samples: Sample[], pipelines: string[]): string[] {
  const [first, last] = [samples[0], samples.at(-1)];
  if (!first || !last || first === last) return [pc.dim('Rates come with the next look.')];
  const minutes = (last.at - first.at) / 60_000;
  const told = pipelines
    .map((name) => ({ name, rate: ((last.completed.get(name) ?? 0) - (first.completed.get(name) ?? 0)) / minutes }))
    .filter(({ rate }) => rate > 0)
    .sort((a, b) => b.rate - a.rate)
    .map(({ name, rate }) => `${words(name)} ${count(Math.round(rate))}`);
  return [line(`Attempts completed a minute: ${told.join(', ') || 'nothing'}`)];
}

function sampleOf({ stages }: Overview, at: number): Sample {
  const completed = new Map<string, number>();
  for (const stage of stages) completed.set(stage.pipeline, (completed.get(stage.pipeline) ?? 0) + stage.completed);
  return { at, completed };
}

/** All lines of a look, as many as the terminal has. */
function frame({ overview, failed, isOfOne }: Seen, samples: Sample[]): string[] {
  const { columns = 80, rows = 24 } = process.stdout;
  // A quarter of the screen for the faults: many of them would push the stages and the errors below its end.
  const head = headLines({ overview }, rows / 4);
  const rates = rateLines(
    samples,
    overview.pipelines.map(({ pipeline }) => pipeline),
  );
  const errors = failed.length > 0 ? ['', pc.bold('Failed last'), ...runLines(failed, columns, isOfOne)] : [];
  const room = Math.max(4, rows - head.length - rates.length - errors.length - 4);
  return [
    pc.dim(line(`millrace · ${moment(overview.now)} · ctrl-C ends`)),
    ...head,
    ...rates,
    '',
    ...stageLines(overview, columns, { most: room }),
    ...errors,
  ].slice(0, rows - 1);
}

export const watch = defineOperate({
  usage: `npx millrace watch [PIPELINE] [--remote[=REF]]
  The stages, rates and the newest errors, drawn anew in place every five seconds until ctrl-C. Needs a terminal.`,
  words: 1,
  takes: ['pipeline'],
  run: drawProject,
});

async function drawProject(context: Context): Promise<0> {
  if (!process.stdout.isTTY || context.json)
    throw new CommandError('watch draws at a terminal: ask millrace status --json.', 2);
  // Looks before it takes the screen, so that the error of a first look stays readable.
  let seen = await look(context);
  const samples: Sample[] = [];
  const keep = () => {
    samples.push(sampleOf(seen.overview, Date.parse(seen.overview.now)));
    const from = (samples.at(-1)?.at ?? 0) - rateSpanMs;
    while (samples.length > 2 && (samples[0] as Sample).at < from) samples.shift();
  };
  keep();
  await keepDrawing({
    look: async () => {
      seen = await look(context);
      keep();
    },
    frame: () => frame(seen, samples),
    at: () => seen.overview.now,
  });
  return 0;
}
