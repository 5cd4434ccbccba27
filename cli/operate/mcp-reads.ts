// The tools by which an assistant reads: what is wrong, runs, attempts, figures, alerts, the journal and settings.
import { z } from 'zod';
import type { Overview, Run, Series, StageHealth, Touched } from '../../operators/answers.ts';
import { isBusy, sayBackoff, sayQuietAlerts, wellOf } from '../../operators/needs.ts';
import { rangeOf, ranges, stretchesOf } from '../../operators/ranges.ts';
import { sayFault } from '../../supabase/functions/_millrace/alerts/say-alert.ts';
import { asCommands } from '../project/as-commands.ts';
import type { Finding } from '../project/read-health.ts';
import type { Api } from './ask-api.ts';
import { remedyOf } from './help-lines.ts';
import { readAlerts } from './read-alerts.ts';
import { withWaits } from './say-waiting.ts';

const name = z.string().max(100);
const text = z.string().max(500);
const time = z.string().max(40).describe('such as 2026-11-21T08:00:00Z');
const id = z.int().min(1);
const page = {
  limit: z.int().min(1).max(50).default(20),
  cursor: z.string().max(100).optional().describe('next of the answer before'),
};

/** Returns a series whose points lack their zeros: with them, a month would be cut at the bound of an answer. */
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
  parent: id.optional().describe('the run whose children they are'),
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
async function overview(api: Api): Promise<object> {
  const answer = await api.read<Overview>('overview');
  const well = wellOf(answer);
  const faults = well.faults.map((fault) => ({
    ...fault,
    detail: fault.detail && asCommands(fault.detail),
    message: asCommands(sayFault(fault)),
  }));
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

/** Fields that the project's own code wrote: a `code` in them is no error. */
const payloads = new Set(['output', 'metadata', 'form', 'row', 'usage', 'turns', 'decisions']);

/** Returns an answer behind the cause and remedy of each code in it, each once. */
function withHelp(answer: object): object {
  const codes = new Set<string>();
  JSON.stringify(answer, (name, value) => {
    if ((name === 'code' || name === 'error_code') && typeof value === 'string') codes.add(value);
    return payloads.has(name) ? undefined : value;
  });
  return { ...helpOf(codes), ...answer };
}

/** Returns the cause and remedy of each code that docs/errors.md has, as the field help; nothing where it has none. */
function helpOf(codes: Iterable<string>): { help?: Record<string, string> } {
  const help = [...codes].flatMap((code) => {
    const known = remedyOf(code);
    return known ? [[code, `${known.cause} ${known.remedy}`] as const] : [];
  });
  return help.length > 0 ? { help: Object.fromEntries(help) } : {};
}

type Settings = { findings: Finding[] | null } & Record<string, unknown>;

/** Resolves to the findings of doctor(), with commands in the place of SQL and the help of the errors that they name. */
async function doctor(api: Api): Promise<unknown> {
  const { findings } = await api.read<Settings>('settings');
  const codes = (findings ?? []).flatMap(({ detail }) =>
    [...detail.matchAll(/\b(\w+) at \d{4}-/g)].map(([, code]) => code),
  );
  return {
    ...helpOf(codes as string[]),
    findings: findings?.map(({ what, detail }) => ({ what, detail: asCommands(detail) })) ?? null,
  };
}

/** Resolves to alerts whose playbooks are named as the resources that the assistant can read. */
async function alerts(api: Api, given: Record<string, unknown>): Promise<object> {
  const answer = await readAlerts(api, given);
  const readable = (playbook: string) => playbook.replace(/^https:.*\/files\/docs\//, 'millrace://docs/');
  return { ...answer, alerts: answer.alerts.map((of) => ({ ...of, playbook: readable(of.playbook) })) };
}

/** Resolves to a run, behind what it waits for. */
async function run(api: Api, given: Record<string, unknown>): Promise<object> {
  const { waits, unattended, ...answer } = await withWaits(api, await api.read<Run>('run', given));
  const reasons = unattended?.map((of) => ({ ...of, remedy: asCommands(of.remedy) }));
  return withHelp({ ...(waits.length > 0 && { waits }), ...(reasons && { unattended: reasons }), ...answer });
}

/** Returns a tool that hands over what one read of the API answers. */
const reads = (api: Api, tool: string, read: string, description: string, shape: z.ZodRawShape): Tool => ({
  name: tool,
  description,
  shape,
  run: async (given) => withHelp(await api.read(read, given)),
});

export const readTools = (api: Api): Tool[] => [...projectTools(api), ...runTools(api)];

function projectTools(api: Api): Tool[] {
  return [
    {
      name: 'overview',
      description:
        'Whether all is well and what is not; pipelines and their stages with what is ready, in work, waiting, failed and ' +
        'late, why nobody works at one (unattended), and why rows wait for their next try (backoff); bulks. What doctor finds stands here ' +
        'within a minute, and as long after its end.',
      shape: {},
      run: async () => withHelp(await overview(api)),
    },
    {
      name: 'doctor',
      description:
        'What is amiss in the project at this moment: each finding says how it should be, how it is, and what helps. null: whose key sees ' +
        'some pipelines only is told nothing.',
      shape: {},
      run: () => doctor(api),
    },
    {
      name: 'alerts',
      description: 'Alerts, the newest first.',
      shape: { pipeline: name.optional(), open: z.boolean().default(true), ...page },
      run: (given) => alerts(api, given),
    },
    {
      name: 'series',
      description:
        'What a pipeline, or one stage of it, came to in a range of time, and in the time before it: outcomes, times, cost, errors by code, and the highest backlog and age. ' +
        'What a point does not have is zero.',
      shape: {
        pipeline: name,
        stage: name.optional(),
        range: z.enum(ranges.map((range) => range.name)).default('24h'),
      },
      run: async ({ range, ...query }) => {
        const { now, before } = stretchesOf(rangeOf(String(range)), Date.now());
        const read = async (stretch: object) =>
          withoutZeros(await api.read<Series>('series', { ...query, ...stretch }));
        return { now: await read(now), before: await read(before) };
      },
    },
    {
      name: 'touched',
      description:
        'What a change of a stage or its prompt touches: the rows of the newest runs whose result each model, prompt and release ' +
        'made, with what it and the stages behind it have cost, which to make them again costs about. whole: there are no other runs.',
      shape: { pipeline: name, stage: name },
      run: async (given) => {
        const { made, ...rest } = await api.read<Touched>('touched', given);
        return { ...rest, made: made.map((of) => ({ ...of, run_ids: of.run_ids.slice(0, 20) })) };
      },
    },
    reads(api, 'journal', 'journal', 'Who did what, when and why, the newest first.', {
      pipeline: name.optional(),
      run: id.optional(),
      bulk: id.optional(),
      verb: name.optional(),
      by: text.optional(),
      ...page,
    }),
    reads(
      api,
      'limits',
      'limits',
      'Shared limits and stages with limits, with what is in work and waits there, throttles and pauses, and the fullest quotas of tenants.',
      {},
    ),
    {
      name: 'settings',
      description:
        'Operators, channels of alerts with their last message, jobs of pg_cron with their last run, settings and pipelines; with pipeline, ' +
        'its newest versions.',
      shape: { pipeline: name.optional() },
      // The tool doctor answers the findings.
      run: async (given) => ({ ...(await api.read<Settings>('settings', given)), findings: undefined }),
    },
  ];
}

function runTools(api: Api): Tool[] {
  return [
    reads(
      api,
      'search',
      'search',
      'Finds runs by the number of a run or an attempt, a trace id, the key of a row, or the label of a row or how it begins.',
      { text, pipeline: name.optional() },
    ),
    reads(
      api,
      'runs',
      'runs',
      'Runs by a filter: the newest first; by stage or error_code without a status, those that failed come first. An empty list with next ' +
        'means none among those looked at: go on with cursor.',
      { ...filterShape, text: text.optional().describe('anywhere in label, key, errors or metadata'), ...page },
    ),
    {
      name: 'run',
      description:
        'One run: for what it waits (waits), its stages and what made their results (made_by: attempt, model, prompt, release, or by_hand), ' +
        'attempts, errors with the last log lines, children, and what people did to it.',
      shape: { run: id },
      run: (given) => run(api, given),
    },
    reads(
      api,
      'attempt',
      'attempt',
      'One attempt: its error, the last lines of its log, its result, and its usage, such as model, tokens and cost.',
      { attempt: id },
    ),
    reads(api, 'dead_letters', 'dead_letters', 'What failed for good, by stage and error code.', {
      pipeline: name.optional(),
    }),
    reads(
      api,
      'costs',
      'costs',
      'What attempts cost, exactly, by pipeline, stage, model and tenant, with the 20 dearest of the newest 2,000 runs (whole: there are no ' +
        'others). Goes by whole hours for the last 25, else by whole days (UTC); since: 30 days ago where it is left out.',
      { pipeline: name.optional(), since: time.optional(), before: time.optional() },
    ),
  ];
}
