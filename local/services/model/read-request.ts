import { z } from 'zod';
import { describeKind } from '../http/describe-kind.ts';
import { checkStrict } from './answer-schema.ts';
import { ApiError } from './api-error.ts';
import type { JsonSchema } from './json-schema.ts';
import type { Tool, ToolChoice } from './pick-tool.ts';

/** A JSON schema as a client sends it: any object; the validator looks closer. */
export const schemaObject = z.record(z.string(), z.unknown());

/** Fields that both APIs check alike. */
export const commonFields = {
  model: z.string().min(1),
  metadata: z.record(z.string().max(64), z.string().max(512)).nullish(),
  stream: z.literal(false, { error: 'streaming is not offered; leave "stream" out' }).nullish(),
};

/** A function tool's own fields. */
export const functionFields = {
  name: z.string().regex(/^[\w-]{1,64}$/, { error: 'a name has 1 to 64 letters, digits, _ and -' }),
  description: z.string().nullish(),
  parameters: schemaObject.nullish(),
  strict: z.boolean().nullish(),
};

/** Parses a request body. Throws ApiError 400 with the field as `param`, the kind found and the remedy. */
export function readBody<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const param = (issue?.path ?? []).reduce<string>(
    (path, step) => (typeof step === 'number' ? `${path}[${step}]` : `${path}${path && '.'}${String(step)}`),
    '',
  );
  const value = (issue?.path ?? []).reduce<unknown>((at, step) => (at as Record<PropertyKey, unknown>)?.[step], body);
  const where = param === '' ? 'The body' : `'${param}'`;
  throw new ApiError(400, `${where} is ${describeKind(value)}: ${issue?.message}.`, param || null, 'invalid_value');
}

/** Returns a function tool in the form in which it is picked and filled. Checks its schema if it is strict. */
export function toTool(fields: z.output<z.ZodObject<typeof functionFields>>, param: string): Tool {
  const parameters = (fields.parameters ?? {
    type: 'object',
    properties: {},
    additionalProperties: false,
  }) as JsonSchema;
  if (fields.strict === true) checkStrict(parameters, param);
  return { name: fields.name, description: fields.description ?? '', parameters, param };
}

/** Returns the tools and the choice among them. Throws ApiError 400 when the choice names a tool that is not given. */
export function readToolChoice(choice: string | { name: string } | null | undefined, tools: Tool[]): ToolChoice {
  if (choice === null || choice === undefined) return { mode: 'auto' };
  if (typeof choice === 'string') return { mode: choice as 'none' | 'auto' | 'required' };
  if (tools.some(({ name }) => name === choice.name)) return { mode: 'function', name: choice.name };
  throw new ApiError(400, `'tool_choice' names "${choice.name}", which is not among the tools.`, 'tool_choice');
}
