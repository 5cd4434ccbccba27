// The file of `millrace sync --types`: each pipeline's stages, with the types of their results and the codes of their errors, as
// @millrace/client takes them.
import { z } from 'zod';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';

type Schema = z.core.JSONSchema.JSONSchema;

/** The first line of the file, by which `millrace check` knows it. */
export const typesHead =
  '// Written by `npx millrace sync --types` from supabase/functions/_pipelines. Do not edit it.';

/** The text of the file. `outputs`: the schemas of results by pipeline and stage. */
export function pipelineTypes(
  pipelines: PipelineDefinition[],
  outputs: Map<string, Record<string, z.ZodType>>,
): string {
  const interfaces = pipelines.map(({ name, stages }) => {
    const lines = Object.entries(stages).map(([stage, definition]) => {
      const result = resultOf(outputs.get(name)?.[stage]);
      return `    ${stage}: { result: ${result}; error: ${codesOf(definition)} };`;
    });
    const body = [`  pipeline: '${name}';`, '  stages: {', ...lines, '  };'];
    return [`export interface ${interfaceName(name)} {`, ...body, '}', ''].join('\n');
  });
  return [`${typesHead}\n`, ...interfaces].join('\n');
}

const interfaceName = (pipeline: string) =>
  pipeline.replaceAll(/(?:^|_)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** Returns the codes that a stage's retry policy names, or any; the engine and handlers have others. */
function codesOf(definition: object): string {
  const { retry } = definition as { retry?: { byCode?: object } };
  return (
    Object.keys(retry?.byCode ?? {})
      .map((code) => JSON.stringify(code))
      .join(' | ') || 'string'
  );
}

function resultOf(schema: z.ZodType | undefined): string {
  if (!schema) return 'unknown';
  try {
    return typeOf(z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any', reused: 'inline' }));
  } catch {
    // A schema that refers to itself, or of another library.
    return 'unknown';
  }
}

function typeOf(schema: Schema | boolean | undefined): string {
  if (schema === undefined || typeof schema === 'boolean') return 'unknown';
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return `(${either.map((one) => typeOf(one as Schema)).join(' | ')})`;
  if (schema.allOf) return `(${schema.allOf.map((one) => typeOf(one as Schema)).join(' & ')})`;
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return `Array<${typeOf(schema.items as Schema)}>`;
    case 'object':
      return objectOf(schema);
    default:
      return 'unknown';
  }
}

function objectOf({ properties, required = [], additionalProperties }: Schema): string {
  if (!properties) return `Record<string, ${typeOf(additionalProperties as Schema)}>`;
  const fields = Object.entries(properties).map(
    ([name, of]) =>
      `${/^[a-z_]\w*$/i.test(name) ? name : JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${typeOf(of as Schema)}`,
  );
  return `{ ${fields.join('; ')} }`;
}
