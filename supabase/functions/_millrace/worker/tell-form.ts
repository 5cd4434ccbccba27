// Schemas of a stage, as its code says them: of its result, and of the columns of the row that an operator may edit.
import { z } from 'zod';
import type { PipelineInput } from '../define/definition-schema.ts';
import type { Rpc } from '../engine/engine-client.ts';
import { messageOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Stage } from '../stage/stage.ts';

const ANSWER_TIME_MS = 8_000;
/** The most characters of a form; a longer one is left out, and its values are edited unchecked. */
const LONGEST = 50_000;

type JsonSchema = Record<string, unknown>;

/** The form of a stage: the schema of its result, and of the columns of the row that its input names and people may edit. */
export function formOf({ input, output, pipeline }: Pick<Stage, 'input' | 'output' | 'pipeline'>): object {
  const { entity } = (input as { shape?: Record<string, z.ZodType> }).shape ?? {};
  const { properties = {} } = entity ? schemaOf(entity, 'input') : {};
  const kept = keptColumns(pipeline.input);
  const editable = Object.entries(properties as JsonSchema).filter(([name]) => !kept.includes(name));
  const row = { type: 'object', minProperties: 1, additionalProperties: false };
  const form = { result: schemaOf(output, 'output'), row: { ...row, properties: Object.fromEntries(editable) } };
  return JSON.stringify(form).length > LONGEST ? { row: { ...row, properties: {} } } : form;
}

/** Lists the key of the row and the columns that the engine writes. */
function keptColumns({ entity, stages }: PipelineInput): string[] {
  const { key = 'id', projection, status } = entity;
  const { column, history, attempts, retryAt, error } = status ?? {};
  const ofStatus = [column, history?.since, history?.changes, attempts, retryAt, error];
  const parts = ['status', 'job_id', 'result', 'error', 'retry_count', 'started_at', 'completed_at'];
  const ofStages = Object.keys(stages).flatMap((stage) => parts.map((part) => `${stage}_${part}`));
  return [key, ...ofStatus, ...(projection === 'columns' ? ofStages : [])].filter((name) => name !== undefined);
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  try {
    const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any', reused: 'inline' });
    return readable(rest) as JsonSchema;
  } catch {
    // The schema is of another library, so its values are edited as JSON.
    return {};
  }
}

/** A schema as the database reads it: a choice is anyOf, and patterns, which zod writes for JavaScript alone, are left out. */
function readable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(readable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => {
      if (key === 'pattern' && typeof inner === 'string') return [];
      return [[key === 'oneOf' ? 'anyOf' : key, readable(inner)]];
    }),
  );
}

/** Tells the database the forms of stages. A database that does not take them leaves their edits unchecked, and says so here. */
export async function tellForms(stages: readonly Stage[], rpc: Rpc, log: Log): Promise<void> {
  for (const stage of stages) {
    try {
      const args = { p_pipeline: stage.pipeline.name, p_stage: stage.name, p_form: formOf(stage) };
      const { error } = await rpc('millrace_tell_form', args, AbortSignal.timeout(ANSWER_TIME_MS));
      if (error) throw new Error(error.message);
    } catch (error) {
      log.info('the schemas of a stage were not told to the database', { stage: stage.name, error: messageOf(error) });
    }
  }
}
