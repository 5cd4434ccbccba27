import { z } from 'zod';

// The subset of JSON Schema by which the database checks decisions. Any other keyword is refused here: the database
// would refuse it only when the migration is applied, which then could not be changed any more.
const known = new Set(
  (
    'type enum const anyOf properties required additionalProperties items minItems maxItems minLength maxLength pattern ' +
    'minimum maximum exclusiveMinimum exclusiveMaximum title description default format $schema'
  ).split(' '),
);

type JsonSchema = Record<string, unknown>;

/** Takes a zod schema or a JSON schema and gives the JSON schema; a fault names the place, what must stand there and the remedy. */
export const decisionSchema = z
  .custom<z.ZodType | JsonSchema>(isObject, 'must be a zod schema or a JSON schema')
  .transform((given, context): JsonSchema => {
    try {
      const schema = given instanceof z.ZodType ? jsonSchemaOf(given) : (given as JsonSchema);
      checkSchema(schema, []);
      return schema;
    } catch (error) {
      const path = error instanceof SchemaFault ? error.path : [];
      context.addIssue({ code: 'custom', path, message: (error as Error).message });
      return z.NEVER;
    }
  });

class SchemaFault extends Error {
  constructor(
    readonly path: string[],
    message: string,
  ) {
    super(message);
  }
}

/**
 * Returns the schema of the input that a person sends. Defaults are hints alone: the database stores the input as it
 * is.
 */
function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return rest;
}

const types = 'null, boolean, integer, number, string, array or object';
const notChecked = 'is not checked by the database: say it with the keywords it knows, or leave it out';
const noValue = 'No value could fit: correct one of the two.';

function checkSchema(schema: unknown, path: string[]): void {
  const refuse = (keyword: string, message: string): never => {
    throw new SchemaFault([...path, keyword], message);
  };
  if (!isObject(schema)) throw new SchemaFault(path, 'must be a JSON schema: write an object, {} takes any value');
  for (const keyword of Object.keys(schema)) if (!known.has(keyword)) refuse(keyword, notChecked);
  const { type, pattern, items, anyOf, enum: choices, additionalProperties: any } = schema;
  const named = Array.isArray(type) ? type : type === undefined ? [] : [type];
  if (
    (Array.isArray(type) && type.length === 0) ||
    !named.every((one) => typeof one === 'string' && types.split(/, | or /).includes(one))
  ) {
    refuse('type', `must be ${types}, or a list of these: correct it, or leave it out`);
  }
  for (const [keyword, list] of Object.entries({ enum: choices, anyOf })) {
    if (list !== undefined && !(Array.isArray(list) && list.length > 0))
      refuse(keyword, 'must be a list that is not empty');
  }
  if (any !== undefined && typeof any !== 'boolean' && JSON.stringify(any) !== '{}')
    refuse('additionalProperties', notChecked);
  if (pattern !== undefined && typeof pattern !== 'string')
    refuse('pattern', 'must be a regular expression, as a text');
  checkFields(schema, refuse);
  for (const [low, high, isCount] of bounds) checkBounds(schema, low, high, isCount, refuse);
  for (const [key, inner] of Object.entries((schema.properties ?? {}) as object))
    checkSchema(inner, [...path, 'properties', key]);
  if (items !== undefined) checkSchema(items, [...path, 'items']);
  if (Array.isArray(anyOf))
    anyOf.forEach((inner, position) => void checkSchema(inner, [...path, 'anyOf', `${position}`]));
}

type Refuse = (keyword: string, message: string) => never;

/** Checks what a schema says of the fields of an object. */
function checkFields({ properties, required, additionalProperties }: JsonSchema, refuse: Refuse): void {
  if (properties !== undefined && !isObject(properties)) refuse('properties', 'must be an object of schemas');
  if (required === undefined) return;
  if (!Array.isArray(required) || !required.every((field) => typeof field === 'string')) {
    refuse('required', 'must be a list of names');
    return;
  }
  const unknown = required.find(
    (field) => additionalProperties === false && !(field in ((properties ?? {}) as object)),
  );
  if (unknown !== undefined) {
    refuse(
      'required',
      `must be a list of fields under properties, which ${unknown} is not: add it there, or take it out`,
    );
  }
}

const bounds = [
  ['minItems', 'maxItems', true],
  ['minLength', 'maxLength', true],
  ['minimum', 'maximum', false],
  ['exclusiveMinimum', 'exclusiveMaximum', false],
] as const;

/** Checks that two bounds are numbers, of a count whole ones from 0, and in order. */
function checkBounds(schema: JsonSchema, low: string, high: string, isCount: boolean, refuse: Refuse): void {
  for (const keyword of [low, high]) {
    const value = schema[keyword];
    if (value === undefined) continue;
    if (typeof value !== 'number') refuse(keyword, `must be a ${isCount ? 'whole number from 0' : 'number'}`);
    if (isCount && !(Number.isInteger(value) && Number(value) >= 0)) refuse(keyword, 'must be a whole number from 0');
  }
  if (Number(schema[low]) > Number(schema[high])) refuse(low, `must be at most ${high}. ${noValue}`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
