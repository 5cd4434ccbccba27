// The texts that `add` writes, as people would begin them.
import type { StageInput } from '../../supabase/functions/_millrace/define/definition-schema.ts';
import { functionOf } from '../sync/pipeline-functions.ts';

/** The options of `add`. */
export interface Added {
  pipeline: string;
  stages: string[];
  /** The table whose rows go through a new pipeline, `public.PIPELINE` where it is not named. */
  table?: string;
  /** Its key, `id` where it is not named. */
  key?: string;
  /** The stages that each new stage needs; undefined: the stage before it. */
  needs?: string[];
  /** The condition under which each new stage runs. */
  when?: string;
  /** How the stages work: by their own code, at a service that calls back, by a model, or by a person's decision. */
  work: 'own' | 'external' | 'model' | 'manual';
  /** Whether the model is asked at its batch price. */
  batch?: boolean;
}

/** A stage whose files are written. */
interface Given extends Added {
  work: Exclude<Added['work'], 'manual'>;
  stage: string;
  folder: string;
  /** The file of the definition. */
  definition: string;
  /** The name under which it exports the pipeline. */
  exported: string;
}

export const camel = (text: string) => text.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Reserved words of TypeScript, then names that the templates below use. */
const taken = new Set(
  (
    'arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally ' +
    'for function if implements import in instanceof interface let new null package private protected public return static super ' +
    'switch this throw true try typeof var void while with yield ' +
    'askModel atBatchPrice cheap definePipeline finishAnswer input jobService model modelSettings output prompt quoteResult service waiting z'
  ).split(' '),
);

/** Returns a name that a file of a stage can give the pipeline: this one, unless something else has it there. */
const freeName = (name: string) => (taken.has(name) || /(?:Row|Stage)$/.test(name) ? `${name}Pipeline` : name);

/** Returns the name under which a new pipeline is exported. */
export const exportName = (pipeline: string) => freeName(camel(pipeline));

/** Returns the line that imports a pipeline which a definition exports under this name. */
function importing(exported: string, definition: string): string {
  const name = freeName(exported);
  return `import { ${name === exported ? name : `${exported} as ${name}`} } from '../_pipelines/${definition}';`;
}

/** Returns a text between quotes, as TypeScript reads it. */
const quoted = (text: string) => `'${text.replaceAll(/[\\']/g, '\\$&')}'`;

/** Returns the definition of a new pipeline. */
export function definitionText(added: Added): string {
  const { table = `public.${added.pipeline}`, key = 'id' } = added;
  const lines = added.stages.map((stage, at) => stageLine(added, stage, needsOf(added, added.stages[at - 1])));
  return `import { definePipeline } from '../_millrace/mod.ts';

/** After a change run \`millrace sync\`, which writes the migration. */
export const ${exportName(added.pipeline)} = definePipeline({
  name: '${added.pipeline}',
  entity: { table: ${quoted(table)}, key: ${quoted(key)}, projection: 'columns' },
  stages: {
${lines.join('\n')}
  },
});
`;
}

/** Returns the stages that a new one needs: those that were named, else the one before it, `last`. */
export const needsOf = ({ needs }: Added, last: string | undefined) => needs ?? (last === undefined ? [] : [last]);

/** Returns a new stage's options in the definition. */
export function stageOptions({ pipeline, work, when, batch }: Added, stage: string, needs: string[]): StageInput {
  const graph = { ...(needs.length > 0 && { needs }), ...(when !== undefined && { when }) };
  if (work === 'manual') return { kind: 'manual', ...graph, decision: { schema: verdict } };
  const worked = { function: functionOf(pipeline, stage), ...graph };
  if (work === 'external') {
    return { kind: 'external', ...worked, completion: { callback: true, pollSeconds: 10, deadlineSeconds: 600 } };
  }
  // A model takes seconds, so the stage has many rows in work meanwhile.
  const waits = work === 'model' && { concurrency: 50, leaseSeconds: 60, timeoutSeconds: 50 };
  // Rows of a batch wait for its own pipeline, which asks the provider.
  const completion = batch && { completion: { callback: true, pollSeconds: null, deadlineSeconds: 200_000 } };
  return { kind: 'function', ...worked, ...waits, ...completion };
}

/** The least that a person can decide. */
const verdict = {
  type: 'object',
  properties: { verdict: { enum: ['accept', 'reject'] } },
  required: ['verdict'],
};

/** Returns a stage's line of the definition. */
export const stageLine = (added: Added, stage: string, needs: string[]) =>
  `    ${stage}: ${literal(stageOptions(added, stage, needs))},`;

/** Returns a value as TypeScript has it, in one line. Keys are plain names. */
function literal(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  return `{ ${Object.entries(value)
    .map(([key, inner]) => `${key}: ${literal(inner)}`)
    .join(', ')} }`;
}

export const indexText = ({ stage }: Given) => `import { serveStage } from '../_millrace/mod.ts';
import { ${camel(stage)}Stage } from './handler.ts';

serveStage(${camel(stage)}Stage);
`;

/** The handler, which does the least that can be tested. */
export function handlerText({ exported, stage, definition, work, batch = false }: Given): string {
  const values = { pipeline: freeName(exported), stage: camel(stage), imported: importing(exported, definition) };
  if (work === 'external') return externalText(values, stage);
  return work === 'model' ? modelText(values, stage, batch) : ownText(values, stage);
}

type Names = Record<'pipeline' | 'stage' | 'imported', string>;

const ownText = ({ pipeline, stage, imported }: Names, name: string) => `import { z } from 'zod';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
${imported}

/** The row's columns that the stage reads; \`needs\` beside \`entity\` has the results of the stages before it. */
const input = z.object({ entity: z.looseObject({}) });
const output = z.object({ done: z.boolean() });

/** TODO: say what the stage makes of a row. An error that it throws is tried again, unless it is a PermanentError. */
export function ${stage}Row(
  { entity }: z.output<typeof input>,
  { log }: Pick<HandlerContext, 'log'>,
): z.input<typeof output> {
  log.info('a row came by', { columns: Object.keys(entity).length });
  return { done: true };
}

export const ${stage}Stage = defineStage({ pipeline: ${pipeline}, stage: '${name}', input, output, handler: ${stage}Row });
`;

const batchImport = `import { atBatchPrice } from '../_millrace/batches/batch-price.ts';\n`;
const settingsImport = `import { modelSettings } from '../_millrace/model/model-settings.ts';\n`;
const batchModel = `/** Answers within a day at half the price; what no batch answers is asked directly, at the full price. */
const cheap = atBatchPrice(model, { within: '24h', fallback: 'direct' });

`;

const modelText = ({ pipeline, stage, imported }: Names, name: string, batch: boolean) => `import { z } from 'zod';
${batch ? batchImport : ''}import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { askModel, finishAnswer, model } from '../_millrace/model/model.ts';
${batch ? '' : settingsImport}import { quoteResult } from '../_millrace/model/prompt.ts';
${imported}

${batch ? batchModel : ''}/** The row's columns that the stage reads; \`needs\` beside \`entity\` has the results of the stages before it. */
const input = z.object({ entity: z.looseObject({}) });
const output = z.object({ summary: z.string() });

/** TODO: say what the model is to make of a row. Its answer is held to \`output\`. */
const prompt = { label: '${name}-1', instructions: 'Sum the row up in one sentence.' };

/** Asks the model at LLM_URL. */
export function ${stage}Row({ entity }: z.output<typeof input>, context: HandlerContext) {
  return askModel({ name: '${name}', schema: output, prompt, input: quoteResult('row', entity)${batch ? ', model: cheap' : ''} }, context);
}

export const ${stage}Stage = defineStage({
  pipeline: ${pipeline},
  stage: '${name}',
  input,
  output,
  handler: ${stage}Row,
  services: [${batch ? 'cheap' : 'model'}],
  finish: finishAnswer(output${batch ? ', cheap' : ''}),
  settings: [${batch ? 'cheap.settings' : 'modelSettings'}],
});
`;

const externalText = ({ pipeline, stage, imported }: Names, name: string) => `import { z } from 'zod';
import { defineStage, type HandlerContext, jobService, waiting } from '../_millrace/mod.ts';
${imported}

/** The service that does the work. Its address and token are ${serviceSetting(name)}_URL and ${serviceSetting(name)}_AUTH_TOKEN. */
const service = jobService({ name: '${serviceOf(name)}' });

const input = z.object({ entity: z.looseObject({}) });
const output = z.looseObject({});

/**
 * TODO: say what the service is to do with a row. A retry submits a job anew; what must not happen twice, such as a mail, is
 * submitted by context.idempotencyKey.
 */
export async function ${stage}Row({ entity }: z.output<typeof input>, context: HandlerContext) {
  return waiting(service, await service.submit({ row: entity }, context, context.submissionKey));
}

export const ${stage}Stage = defineStage({
  pipeline: ${pipeline},
  stage: '${name}',
  input,
  output,
  handler: ${stage}Row,
  services: [service],
  finish: (job) => output.parse(service.resultOf(job)),
  settings: [service.settings],
});
`;

/** Returns the service of a stage, and how its settings begin. */
const serviceOf = (stage: string) => `${stage.replaceAll('_', '-')}-service`;
const serviceSetting = (stage: string) => serviceOf(stage).toUpperCase().replaceAll('-', '_');

/** A test of the handler alone: it is a plain function. */
export function testText({ stage, folder, work }: Given): string {
  const row = `${camel(stage)}Row`;
  const says = {
    own: `  const log = { info: () => {}, warn: () => {}, error: () => {} };
  expect(${row}({ entity: {} }, { log })).toEqual({ done: true });`,
    model: `  await expect(${row}({ entity: {} }, { env: {} } as never)).rejects.toThrow('LLM_URL');`,
    external: `  await expect(${row}({ entity: {} }, { env: {} } as never)).rejects.toThrow('${serviceSetting(stage)}_URL');`,
  }[work];
  const rule = {
    own: 'makes something of a row',
    model: 'says which setting is missing',
    external: 'says which setting is missing',
  }[work];
  return `import { expect, test } from 'vitest';
import { ${row} } from '../supabase/functions/${folder}/handler.ts';

test('${stage} ${rule}', async () => {
${says}
});
`;
}
