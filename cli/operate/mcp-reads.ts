// The tools by which an assistant reads: the overview, runs, a run, dead letters, alerts and the journal.
import { z } from 'zod';
import type { Overview, Series, StageHealth } from '../../operators/answers.ts';
import { isBusy, sayBackoff, sayQuietAlerts, wellOf } from '../../operators/needs.ts';
import { rangeOf, ranges, stretchesOf } from '../../operators/ranges.ts';
import { sayFault } from '../../supabase/functions/_millrace/alerts/say-alert.ts';
import type { Api } from './ask-api.ts';
import { readAlerts } from './read-alerts.ts';

const name = z.string().max(100);
const text = z.string().max(500);
const time = z.string().max(40).describe('such as 2026-11-21T08:00:00Z');
const id = z.int().min(1);
const page = {
  limit: z.int().min(1).max(50).default(20),
  cursor: z.string().max(100).optional().describe('next of the answer before'),
};

/** A series whose points lack their zeros: with them, a month would be cut at the bound of an answer. */
function withoutZeros({ points, ...rest }: Series): object {
  const isZero = (value: unknown) => !value || (typeof value === 'object' && Object.keys(value).length === 0);
  const lean = (point: object) => Object.fromEntries(Object.entries(point).filter(([, value]) => !isZero(value)));
  return { ...rest, points: points.map(lean) };
}

/** Which runs a list or a bulk is about. */
export const filterShape = {
  pipeline: name.optional(),
  stage: name.optional(),
  status: z.enum(['running', 'completed', 'failed', 'cancelled']).optional(),
  error_code: text.optional(),
  entity: z.string().max(2000).optional().describe('the key of a row'),
  since: time.optional(),
  before: time.optional(),
};

export interface Tool {
  name: string;
  description: string;
  shape: z.ZodRawShape;
  /** Whether what it does cannot be taken back. */
  destroys?: boolean;
  /** Resolves to what the assistant is handed, which is marked as data. */
  run(given: Record<string, unknown>): Promise<unknown>;
}

/**
 * The overview with the sentences that the page and the commands show, and without stages that have nothing to do, of which a
 * project may have a thousand.
 */
async function overview(api: Api): Promise<unknown> {
  const answer = await api.read<Overview>('overview');
  const well = wellOf(answer);
  const faults = well.faults.map((fault) => ({ ...fault, message: sayFault(fault) }));
  const told = (stage: StageHealth) => {
    const says = sayBackoff(stage, Date.parse(answer.now));
    return says ? { ...stage, backoff: { ...stage.backoff, says } } : stage;
  };
  const stages = answer.stages.filter(isBusy).map(told);
  const all = answer.pipelines.reduce((sum, pipeline) => sum + pipeline.stages, 0);
  return {
    ...answer,
    well: { ...well, faults, quiet: sayQuietAlerts(well) },
    stages,
    stages_with_nothing_to_do: all - stages.length,
  };
}

export function readTools(api: Api): Tool[] {
  const reads = (tool: string, read: string, description: string, shape: z.ZodRawShape): Tool => ({
    name: tool,
    description,
    shape,
    run: (given) => api.read(read, given),
  });
  return [
    {
      name: 'overview',
      description:
        'Whether all is well and what is not; pipelines and their stages with what is ready, in work, waiting, failed and ' +
        'late, why nobody works at one (unattended), and why rows wait for their next try (backoff); bulks.',
      shape: {},
      run: () => overview(api),
    },
    reads(
      'runs',
      'runs',
      'Runs by a filter: the newest first; by stage or error_code without a status, those that failed come first. An empty list with next ' +
        'means none among those looked at: go on with cursor.',
      { ...filterShape, text: text.optional().describe('anywhere in label, key, errors or metadata'), ...page },
    ),
    reads(
      'run',
      'run',
      'One run: its stages, attempts, errors with the last log lines, children, and what people did to it.',
      { run: id },
    ),
    reads('attempt', 'attempt', 'One attempt: its error, the last lines of its log, and its result.', { attempt: id }),
    {
      name: 'series',
      description:
        'What a pipeline, or one stage of it, came to in a range of time, and in the time before it: outcomes, times, cost and errors by code. ' +
        'What a point does not have is zero.',
      shape: {
        pipeline: name,
        stage: name.optional(),
        range: z.enum(ranges.map((range) => range.name)).default('24h'),
      },
      run: async ({ range, ...asked }) => {
        const { now, before } = stretchesOf(rangeOf(String(range)), Date.now());
        const read = async (stretch: object) =>
          withoutZeros(await api.read<Series>('series', { ...asked, ...stretch }));
        return { now: await read(now), before: await read(before) };
      },
    },
    reads('dead_letters', 'dead_letters', 'What failed for good, by stage and error code.', {
      pipeline: name.optional(),
    }),
    {
      name: 'alerts',
      description: 'Alerts, the newest first.',
      shape: { pipeline: name.optional(), open: z.boolean().default(true), ...page },
      run: (given) => readAlerts(api, given),
    },
    reads('journal', 'journal', 'Who did what, when and why, the newest first.', {
      pipeline: name.optional(),
      run: id.optional(),
      bulk: id.optional(),
      verb: name.optional(),
      by: text.optional(),
      ...page,
    }),
  ];
}
