import { z } from 'zod';

// The subset of JSON Schema that the database checks decisions by. What it does not know would be refused only when the
// migration is applied, which then could not be changed any more.
const known = new Set(
  (
    'type enum const anyOf properties required additionalProperties items minItems maxItems minLength maxLength pattern ' +
    'minimum maximum exclusiveMinimum exclusiveMaximum title description default format $schema'
  ).split(' '),
);

type JsonSchema = Record<string, unknown>;

/** Takes a zod schema or a JSON schema and gives the JSON schema; a fault names the place and the keyword. */
export const decisionSchema = z
  .custom<z.ZodType | JsonSchema>(isObject, 'must be a zod schema or a JSON schema')
  .transform((given, context): JsonSchema => {
    try {
      const schema = given instanceof z.ZodType ? jsonSchemaOf(given) : (given as JsonSchema);
      checkKeywords(schema, []);
      return schema;
    } catch (error) {
      const path = error instanceof UnknownKeyword ? error.path : [];
      context.addIssue({ code: 'custom', path, message: (error as Error).message });
      return z.NEVER;
    }
  });

class UnknownKeyword extends Error {
  constructor(readonly path: string[]) {
    super('is not checked by the database: say it with the keywords it knows, or leave it out');
  }
}

/** What a person may send: defaults are no more than hints, since the database stores what it is given. */
function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return rest;
}

function checkKeywords(schema: unknown, path: string[]): void {
  if (!isObject(schema)) return;
  for (const keyword of Object.keys(schema)) if (!known.has(keyword)) throw new UnknownKeyword([...path, keyword]);
  const { properties, items, anyOf, additionalProperties } = schema;
  if (isObject(additionalProperties)) throw new UnknownKeyword([...path, 'additionalProperties']);
  if (isObject(properties)) {
    for (const [key, inner] of Object.entries(properties)) checkKeywords(inner, [...path, 'properties', key]);
  }
  checkKeywords(items, [...path, 'items']);
  if (Array.isArray(anyOf)) anyOf.forEach((inner, place) => void checkKeywords(inner, [...path, 'anyOf', `${place}`]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
