// What a definition may say, as the engine reads it: a JSON Schema made of the zod schemas of definePipeline().
import { z } from 'zod';
import { pipelineSchema, sharedLimitsSchema } from '../../supabase/functions/_millrace/define/definition-schema.ts';
import { snakeCase, snakeKeys } from '../../supabase/functions/_millrace/define/snake-keys.ts';

export interface JsonSchema {
  [keyword: string]: unknown;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  oneOf?: JsonSchema[];
  additionalProperties?: JsonSchema | boolean;
  default?: unknown;
}

/** The file of the engine that holds the schema. */
export const schemaFile = 'code/core/definition-schema.sql';
const width = 100;

/** The JSON Schema of what millrace.define() takes; what stands in it more than once is in its `$defs`. */
export function definitionSchema(): JsonSchema {
  const given = z.toJSONSchema(pipelineSchema, { io: 'input', unrepresentable: 'any' }) as JsonSchema;
  const { $schema: _, properties: { name, stages, ...others } = {}, ...rest } = inEngineTerms(given);
  const { oneOf = [], ...stage } = (stages?.additionalProperties ?? {}) as JsonSchema;
  const items = { ...stage, oneOf: oneOf.map((kind) => inList(kind, name as JsonSchema)) };
  const list = { type: 'array', minItems: 1, items, wanted: 'a list of at least one stage' };
  return withParts({
    ...rest,
    properties: { pipeline: name as JsonSchema, ...others, stages: list },
    required: ['pipeline', 'entity', 'stages'],
  });
}

/** The JSON Schema of what millrace.define_limit() takes. */
function sharedLimitSchema(): JsonSchema {
  const given = z.toJSONSchema(sharedLimitsSchema, { io: 'input' }) as JsonSchema;
  return inEngineTerms(given.additionalProperties as JsonSchema);
}

/** A stage of one kind as it stands in a list. Its kind, where it is a function, and its Edge Function may be left out. */
function inList({ properties = {}, required = [], ...rest }: JsonSchema, name: JsonSchema): JsonSchema {
  const { kind, ...others } = properties;
  const isFunction = (kind?.enum as string[] | undefined)?.includes('function');
  return {
    ...rest,
    properties: { name, kind: { ...kind, ...(isFunction && { default: 'function' }) }, ...others },
    required: ['name', ...required.filter((field) => field !== 'function' && (field !== 'kind' || !isFunction))],
  };
}

/** Spells fields as the database does. What may be of several types has the rules of each, a constant is a list of one. */
function inEngineTerms({ anyOf, const: only, ...given }: JsonSchema): JsonSchema {
  const { propertyNames: _, ...schema } = typeof given.listOf === 'string' ? asList(given) : given;
  const types = ((anyOf ?? []) as JsonSchema[]).map(({ type }) => type);
  const [one, none] = (anyOf ?? []) as JsonSchema[];
  const rules = types.includes('array') ? { ...one, ...none } : none?.type === 'null' ? one : {};
  const either = types.length > 0 ? { ...rules, type: types } : {};
  const inner = mapSchemas({ ...either, ...schema, ...(only !== undefined && { enum: [only] }) }, inEngineTerms);
  const { properties, required, default: otherwise } = inner;
  const fields = properties && Object.entries(properties).map(([key, field]) => [snakeCase(key), field]);
  return {
    ...inner,
    ...(fields && { properties: Object.fromEntries(fields) }),
    ...(required && { required: required.map(snakeCase) }),
    ...(otherwise !== undefined && { default: snakeKeys(otherwise) }),
  };
}

/** A schema of values by their names as one of a list, in which their order is kept. */
function asList({ listOf, propertyNames, additionalProperties, ...schema }: JsonSchema): JsonSchema {
  const value = listOf as string;
  const items = {
    type: 'object',
    properties: { name: propertyNames as JsonSchema, [value]: additionalProperties as JsonSchema },
    required: ['name', value],
    additionalProperties: false,
  };
  return { ...schema, type: 'array', minItems: 1, items };
}

/** Moves what stands in a schema more than once into `$defs`, under the field that has it first; its default stays there. */
function withParts(schema: JsonSchema): JsonSchema {
  const counts = new Map<string, number>();
  const textOf = ({ default: _, ...part }: JsonSchema) => JSON.stringify(part);
  const count = (inner: JsonSchema): JsonSchema => {
    const text = textOf(inner);
    counts.set(text, (counts.get(text) ?? 0) + 1);
    return counts.get(text) === 1 ? mapSchemas(inner, count) : inner;
  };
  mapSchemas(schema, count);
  const names = new Map<string, string>();
  const parts: Record<string, JsonSchema> = {};
  const replace = (inner: JsonSchema, field: string): JsonSchema => {
    const { default: otherwise, ...part } = inner;
    const text = textOf(inner);
    if (text.length < 60 || counts.get(text) === 1) return mapSchemas(inner, replace);
    const known = names.get(text);
    const name = known ?? (parts[field] ? `${field}_${names.size}` : field);
    names.set(text, name);
    if (!known) {
      parts[name] = {};
      parts[name] = mapSchemas(part, replace);
    }
    return { $ref: `#/$defs/${name}`, ...(otherwise !== undefined && { default: otherwise }) };
  };
  return { ...mapSchemas(schema, replace), $defs: parts };
}

/** A schema with something else in place of each schema right within it. */
function mapSchemas(schema: JsonSchema, change: (inner: JsonSchema, field: string) => JsonSchema): JsonSchema {
  const { properties, items, oneOf, additionalProperties } = schema;
  const fields = properties && Object.entries(properties).map(([key, field]) => [key, change(field, key)]);
  return {
    ...schema,
    ...(fields && { properties: Object.fromEntries(fields) }),
    ...(items && { items: change(items, 'item') }),
    ...(oneOf && { oneOf: oneOf.map((inner) => change(inner, 'kind')) }),
    ...(typeof additionalProperties === 'object' && { additionalProperties: change(additionalProperties, 'any') }),
  };
}

/** The file of the engine that hands the schema to the functions which check definitions. */
export function definitionSchemaSql(): string {
  return `-- What a definition may say, made of supabase/functions/_millrace/define/definition-schema.ts by \`npm run check -- --write\`.
-- Change it there.

create or replace function millrace.definition_schema() returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select $schema$${shortLines(definitionSchema())}$schema$::jsonb
$$;

create or replace function millrace.shared_limit_schema() returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select $schema$${shortLines(sharedLimitSchema())}$schema$::jsonb
$$;
`;
}

/** JSON whose lists and objects stand on one line where they fit into the width. */
function shortLines(value: unknown, indent = '', before = 0): string {
  const line = JSON.stringify(value);
  if (indent.length + before + line.length < width || typeof value !== 'object' || value === null) return line;
  const within = `${indent} `;
  const parts = Array.isArray(value)
    ? value.map((item) => shortLines(item, within))
    : Object.entries(value)
        .filter(([, item]) => item !== undefined)
        .map(([key, item]) => `${JSON.stringify(key)}:${shortLines(item, within, key.length + 4)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return `${open}\n${parts.map((part) => within + part).join(',\n')}\n${indent}${close}`;
}
