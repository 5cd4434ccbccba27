// The tools by which an assistant acts, with --act: each takes a reason, and a verb over many runs needs a preview
// before it begins.
import { z } from 'zod';
import type { Bulk } from '../../operators/answers.ts';
import { isNeeded, runVerbs, stageVerbs, verbs } from '../../operators/verbs.ts';
import { CommandError } from '../command-error.ts';
import type { Api } from './ask-api.ts';
import { filterShape, type Tool } from './mcp-reads.ts';

const name = z.string().max(100);
const id = z.int().min(1);
const minutes = z.int().min(1).max(576_000).optional();
const reason = z.string().trim().min(3).max(1500).describe('why, for the people who read the journal');
const says = (names: readonly (keyof typeof verbs)[]) => names.map((verb) => `${verb}: ${verbs[verb].says}`).join(' ');
const destroys = (names: readonly (keyof typeof verbs)[]) => names.some((verb) => verbs[verb].destroys);
const stageNeeded = runVerbs.filter((verb) => isNeeded(verb, 'stage')).join(' and ');
/** The parameters of the verbs over runs. */
const action = {
  verb: z.enum(runVerbs).describe(says(runVerbs)),
  stage: name.optional().describe(`which one: ${stageNeeded} need it, reset begins there`),
  message: z.string().max(2000).optional().describe('the error, for fail'),
  permanent: z.boolean().optional(),
};

/** The parameters of an edit, which only one run at a time takes; the tool attempt tells the form of both. */
const edit = {
  attempt: id.optional().describe('for edit: the newest attempt of the stage'),
  result: z.unknown().optional().describe('for edit: the new result of the stage'),
  row: z.record(z.string(), z.unknown()).optional().describe('for edit, in place of result: columns of the row'),
  copy: z
    .boolean()
    .optional()
    .describe('for edit: on a copy of the run, which writes no column; copy in the answer is its run'),
};

/** `whose` names the assistant in each reason, beside the operator whose key it uses. */
export function actTools(api: Api, whose: () => string): Tool[] {
  const act = ({ reason: why, ...request }: Record<string, unknown>) =>
    api.act({ ...request, reason: `${whose()}: ${why}` });
  const acts = (tool: string, description: string, shape: z.ZodRawShape, verb?: string): Tool => ({
    name: tool,
    description,
    shape: { ...shape, reason },
    run: (given) => act(verb ? { verb, ...given } : given),
  });
  return [
    { ...acts('act_on_run', 'Does a verb to one run.', { run: id, ...action, ...edit }), destroys: destroys(runVerbs) },
    {
      ...acts('act_on_stage', 'Pauses, throttles or bypasses a stage, or ends that; or pauses a whole pipeline.', {
        verb: z.enum(stageVerbs).describe(says(stageVerbs)),
        pipeline: name,
        stage: name.optional().describe('all but pause and unpause need it'),
        minutes: minutes.describe('for throttle; for bypass, until end_bypass where it is left out'),
        count: id.max(500).optional().describe('for take_up: how many rows at most, the oldest first'),
        limits: z
          .object({
            rate: z.object({ count: id, per_seconds: id }).optional(),
            max_in_flight: id.optional(),
          })
          .optional()
          .describe('for throttle'),
      }),
      destroys: destroys(stageVerbs),
    },
    acts(
      'silence_alert',
      'Nobody is told of alerts like this one for so many minutes.',
      { alert: id, minutes },
      'silence',
    ),
    ...bulkTools(api, act, acts),
  ];
}

type Acts = (tool: string, description: string, shape: z.ZodRawShape, verb?: string) => Tool;

function bulkTools(api: Api, act: (request: Record<string, unknown>) => Promise<unknown>, acts: Acts): Tool[] {
  // An assistant begins only bulks that it has previewed itself.
  const previewed = new Set<unknown>();
  return [
    {
      name: 'preview_bulk',
      description:
        'Says to how many runs a verb would be done, and about what it costs (cost_usd). Nothing is done to any run.',
      shape: { do: z.object(action), filter: z.object({ ...filterShape, pipeline: name }), reason },
      run: async (given) => {
        const preview = (await act({ verb: 'preview', ...given })) as Bulk;
        previewed.add(preview.bulk);
        return preview;
      },
    },
    {
      name: 'try_bulk',
      description: 'Does a previewed bulk to one of its runs, tried; look at that run before begin_bulk does the rest.',
      shape: { bulk: id, reason },
      destroys: destroys(runVerbs),
      run: async (given) => {
        if (!previewed.has(given.bulk)) {
          throw new CommandError(`Bulk ${given.bulk} was not previewed here: preview_bulk comes first.`, 3);
        }
        return act({ verb: 'try', ...given });
      },
    },
    {
      name: 'begin_bulk',
      description: 'Begins a bulk that preview_bulk has answered. Show the person the preview before.',
      shape: { bulk: id, reason },
      destroys: destroys(runVerbs),
      run: async (given) => {
        if (!previewed.has(given.bulk)) {
          throw new CommandError(`Bulk ${given.bulk} was not previewed here: preview_bulk comes first.`, 3);
        }
        return act({ verb: 'begin', ...given });
      },
    },
    {
      name: 'bulk',
      description: 'Does the next runs of a bulk that has begun, and says how far it is.',
      shape: { bulk: id },
      destroys: destroys(runVerbs),
      run: (given) => api.act({ verb: 'continue', ...given }),
    },
    acts('abort_bulk', 'Ends a bulk; what it has done stays done.', { bulk: id }, 'abort'),
  ];
}
