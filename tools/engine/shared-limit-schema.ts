// The schema of a shared limit, as the engine reads it: a JSON Schema made of the zod schema of defineSharedLimits().
import { z } from 'zod';
import { snakeCase } from '../../supabase/functions/_millrace/compile/snake-keys.ts';
import { sharedLimitsSchema } from '../../supabase/functions/_millrace/define/definition-schema.ts';

interface JsonSchema {
  [keyword: string]: unknown;
  properties?: Record<string, JsonSchema>;
  required?: string[];
}

const width = 100;

/** Spells fields as the database does, and leaves out what it does not read. */
function inEngineTerms({ properties, required, remedy: _, maxProperties: __, ...schema }: JsonSchema): JsonSchema {
  const fields = Object.entries(properties ?? {}).map(([key, field]) => [snakeCase(key), inEngineTerms(field)]);
  return {
    ...schema,
    ...(properties && { properties: Object.fromEntries(fields) }),
    ...(required && { required: required.map(snakeCase) }),
  };
}

/** Returns the schema of a shared limit as a literal of SQL, for its place in the engine's text. */
export function sharedLimitSchema(): string {
  const given = z.toJSONSchema(sharedLimitsSchema, { io: 'input' }) as JsonSchema;
  return `$schema$${shortLines(inEngineTerms(given.additionalProperties as JsonSchema))}$schema$`;
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
