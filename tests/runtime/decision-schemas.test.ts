// The keywords that the schema of a decision may say: the keywords that the database checks decisions by, and nothing else.
import { expect, it } from 'vitest';
import type { PipelineInput } from '../../supabase/functions/_millrace/define/definition-schema.ts';
import { checked } from '../support/definitions.ts';

const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });

const withSchema = (schema: unknown) =>
  checked({
    name: 'p',
    entity: { table: 'public.things', projection: 'none' },
    stages: { review: { kind: 'manual', decision: { schema } } },
  } as PipelineInput);

it.each<[string, unknown, string]>([
  ['no schema', null, 'decision.schema is null, but must be a zod schema or a JSON schema'],
  ['true', true, 'decision.schema is true, but must be a zod schema or a JSON schema'],
  ['a keyword beyond the subset', { oneOf: [{}] }, 'decision.schema.oneOf: is not checked'],
  ['a reference', object({ a: { $ref: '#/$defs/a' } }), 'decision.schema.properties.a.$ref: is not checked'],
  ['a keyword misspelt', object({ a: { maxlength: 3 } }), 'decision.schema.properties.a.maxlength: is not checked'],
  ['a type nobody knows', { type: 'text' }, 'decision.schema.type is "text", but must be null, boolean, integer,'],
  ['a type that is a number', { type: [5] }, 'decision.schema.type is [5], but must be null, boolean, integer,'],
  ['no type at all', { type: [] }, 'decision.schema.type is [], but must be'],
  ['an empty enum', { enum: [] }, 'decision.schema.enum is [], but must be a list that is not empty'],
  ['an enum of one', { enum: 'yes' }, 'decision.schema.enum is "yes", but must be a list'],
  ['no alternative', { anyOf: [] }, 'decision.schema.anyOf is [], but must be a list that is not empty'],
  ['a bad alternative', { anyOf: [{}, { type: 'x' }] }, 'decision.schema.anyOf.1.type is "x", but must be'],
  ['fields in a list', { properties: [] }, 'decision.schema.properties is [], but must be an object of schemas'],
  [
    'a field that is no schema',
    object({ a: 'string' }),
    'decision.schema.properties.a is "string", but must be a JSON schema',
  ],
  ['items that are no schema', { items: [{}] }, 'decision.schema.items is [{}], but must be a JSON schema'],
  [
    'a schema for other fields',
    { additionalProperties: { type: 'string' } },
    'decision.schema.additionalProperties: is not checked',
  ],
  ['a name instead of a list', { required: 'a' }, 'decision.schema.required is "a", but must be a list of names'],
  ['a required number', { required: [1] }, 'decision.schema.required is [1], but must be a list of names'],
  [
    'a required field that is not allowed',
    object({ a: {} }, { required: ['b'], additionalProperties: false }),
    'decision.schema.required is ["b"], but must be a list of fields under properties, which b is not',
  ],
  ['half a character', { minLength: 0.5 }, 'decision.schema.minLength is 0.5, but must be a whole number from 0'],
  ['a negative length', { maxItems: -1 }, 'decision.schema.maxItems is -1, but must be a whole number from 0'],
  ['a bound in words', { minimum: 'ten' }, 'decision.schema.minimum is "ten", but must be a number'],
  [
    'bounds that cross',
    { minLength: 5, maxLength: 4 },
    'decision.schema.minLength is 5, but must be at most maxLength',
  ],
  ['a pattern of a number', { pattern: 5 }, 'decision.schema.pattern is 5, but must be a regular expression'],
])('refuses %s, with its path and the remedy', (_what, schema, message) => {
  expect(() => withSchema(schema)).toThrow(`stages.review.${message}`);
});
