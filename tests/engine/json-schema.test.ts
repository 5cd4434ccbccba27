import Ajv from 'ajv';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createEngine, type Engine, type Row } from '../support/engine.ts';

let engine: Engine;

beforeAll(async () => {
  engine = await createEngine();
});
afterAll(() => engine.database.drop());

const check = 'select millrace.check_json_schema($1, $2)';
const json = JSON.stringify;
const fault = (schema: unknown, value: unknown) =>
  engine.value<string | null>('select millrace.schema_fault($1, $2, $3)', [json(schema), json(value), 'decision']);

const object = (properties: Row, more: Row = {}) => ({ type: 'object', properties, ...more });

describe('a value that breaks its schema is named with its path, what it is and what it must be', () => {
  const verdict = object({ verdict: { enum: ['accept', 'reject'] } });
  const cases: [string, unknown, unknown, string][] = [
    ['one of', verdict, { verdict: 'maybe' }, 'decision.verdict is "maybe", but must be one of "accept", "reject"'],
    ['a constant', { const: 'yes' }, 'no', 'decision is "no", but must be "yes"'],
    ['a type', { type: 'string' }, 5, 'decision is 5, but must be of type string'],
    ['a list of types', { type: ['string', 'null'] }, 5, 'decision is 5, but must be of type string or null'],
    ['half an integer', { type: 'integer' }, 2.5, 'decision is 2.5, but must be of type integer'],
    ['a missing field', { required: ['note'] }, {}, 'decision.note is missing, but must be given'],
    [
      'a field too many',
      object({ a: {}, b: {} }, { additionalProperties: false }),
      { c: 1 },
      'decision.c is not known; known here: a, b',
    ],
    [
      'a name of two words',
      object({ 'a b': { type: 'null' } }),
      { 'a b': 1 },
      'decision["a b"] is 1, but must be of type null',
    ],
    [
      'an item deep inside',
      object({ pages: { items: object({ n: { type: 'number' } }) } }),
      { pages: [{ n: 1 }, { n: 'two' }] },
      'decision.pages[1].n is "two", but must be of type number',
    ],
    ['too few items', { minItems: 1 }, [], 'decision has 0 items, but must have at least 1'],
    ['too many items', { maxItems: 1 }, [1, 2], 'decision has 2 items, but must have at most 1'],
    ['a short text', { minLength: 3 }, 'ab', 'decision is "ab", but must have at least 3 characters'],
    ['a long text', { maxLength: 3 }, 'abcd', 'decision is "abcd", but must have at most 3 characters'],
    ['a pattern', { pattern: '^[A-Z]+$' }, 'abc', 'decision is "abc", but must match the pattern ^[A-Z]+$'],
    ['a low number', { minimum: 10 }, 9, 'decision is 9, but must be at least 10'],
    ['a high number', { maximum: 10 }, 11, 'decision is 11, but must be at most 10'],
    ['a number at an open lower bound', { exclusiveMinimum: 0 }, 0, 'decision is 0, but must be above 0'],
    ['a number at an open upper bound', { exclusiveMaximum: 1 }, 1, 'decision is 1, but must be below 1'],
    [
      'no alternative',
      { anyOf: [{ type: 'string' }, { type: 'null' }] },
      5,
      'decision fits none of what is allowed: decision is 5, but must be of type string; or decision is 5, but must be of type null',
    ],
  ];
  it.each(cases)('%s', async (_what, schema, value, message) => {
    await engine.sql.query(check, [json(schema), 'schema']);
    expect(await fault(schema, value)).toBe(message);
  });

  it('a long value is cut', async () => {
    expect(await fault({ type: 'number' }, 'x'.repeat(5000))).toMatch(
      /^decision is "x{99}…, but must be of type number$/,
    );
  });
});

describe('a schema with what nobody checks is refused, with its path and the remedy:', () => {
  const cases: [string, unknown, string][] = [
    ['no schema', null, 'schema is null, but must be a JSON schema'],
    ['true', true, 'schema is true, but must be a JSON schema'],
    ['a keyword beyond the subset', { oneOf: [{}] }, 'schema.oneOf is not known'],
    ['a reference', object({ a: { $ref: '#/$defs/a' } }), 'schema.properties.a["$ref"] is not known'],
    ['a keyword misspelt', object({ a: { maxlength: 3 } }), 'schema.properties.a.maxlength is not known'],
    ['a type nobody knows', { type: 'text' }, 'schema.type is "text", but must be null, boolean, integer,'],
    ['a type that is a number', { type: [5] }, 'schema.type is [5], but must be null, boolean, integer,'],
    ['no type at all', { type: [] }, 'schema.type is [], but must be'],
    ['an empty enum', { enum: [] }, 'schema.enum is [], but must be a list of at least one value'],
    ['an enum of one', { enum: 'yes' }, 'schema.enum is "yes", but must be a list'],
    ['no alternative', { anyOf: [] }, 'schema.anyOf is [], but must be a list of at least one schema'],
    ['a bad alternative', { anyOf: [{}, { type: 'x' }] }, 'schema.anyOf[1].type is "x", but must be'],
    ['fields in a list', { properties: [] }, 'schema.properties is [], but must be an object of schemas'],
    [
      'a field that is no schema',
      object({ a: 'string' }),
      'schema.properties.a is "string", but must be a JSON schema',
    ],
    ['items that are no schema', { items: [{}] }, 'schema.items is [{}], but must be a JSON schema'],
    [
      'a schema for other fields',
      { additionalProperties: { type: 'string' } },
      'schema.additionalProperties is {"type": "string"}, but must be true or false',
    ],
    ['a name instead of a list', { required: 'a' }, 'schema.required is "a", but must be a list of names'],
    ['a required number', { required: [1] }, 'schema.required is [1], but must be a list of names'],
    [
      'a required field that is not allowed',
      object({ a: {} }, { required: ['b'], additionalProperties: false }),
      'schema.required is ["b"], but must be a list of fields under properties, which "b" is not',
    ],
    ['half a character', { minLength: 0.5 }, 'schema.minLength is 0.5, but must be a whole number from 0'],
    ['a negative length', { maxItems: -1 }, 'schema.maxItems is -1, but must be a whole number from 0'],
    ['a bound in words', { minimum: 'ten' }, 'schema.minimum is "ten", but must be a number'],
    [
      'bounds that cross',
      { minLength: 5, maxLength: 4 },
      'schema.minLength is 5, but must be at most maxLength, which is 4',
    ],
    ['a pattern that is none', { pattern: '(' }, 'schema.pattern is "(", but must be a regular expression'],
    ['a pattern of a number', { pattern: 5 }, 'schema.pattern is 5, but must be a regular expression'],
  ];
  it.each(cases)('%s', async (_what, schema, message) => {
    const refusal = await engine.refusal(check, [json(schema), 'schema']);
    expect(refusal).toMatchObject({ code: 'MR001', message: expect.stringContaining(message) });
    expect(refusal.hint).toBeTruthy();
  });

  it('the hint to an unknown keyword lists what is known', async () => {
    const { hint } = await engine.refusal(check, [json({ not: {} }), 'schema']);
    for (const keyword of ['type', 'enum', 'anyOf', 'required', 'pattern', 'exclusiveMaximum']) {
      expect(hint).toContain(keyword);
    }
  });
});

it('takes what zod makes of a form, and finds the same faults', async () => {
  const form = z.object({
    verdict: z.enum(['accept', 'reject']).describe('What becomes of the book'),
    score: z.number().positive().max(10),
    pages: z.array(z.int().min(1)).min(1).max(3),
    reviewer: z.email().nullable(),
    kind: z.literal('review'),
    read_on: z.iso.date(),
    key: z.uuid(),
    link: z.url(),
    more: z.looseObject({}),
    note: z.string().max(500).optional(),
  });
  const schema = z.toJSONSchema(form);
  await engine.sql.query(check, [json(schema), 'schema']);
  const good = {
    verdict: 'accept',
    score: 7.5,
    pages: [1, 2],
    reviewer: 'a@b.test',
    kind: 'review',
    read_on: '2026-02-28',
    key: '33333333-3333-4333-8333-333333333333',
    link: 'http://b.test',
    more: { any: 'thing' },
  };
  expect(form.safeParse(good).success).toBe(true);
  expect(await fault(schema, good)).toBeNull();
  expect(await fault(schema, { ...good, reviewer: null, note: 'fine' })).toBeNull();
  const faults: Row = {
    verdict: 'maybe',
    score: 0,
    pages: [1.5],
    reviewer: 'nobody',
    kind: 'other',
    read_on: '2026-02-29',
    key: 'x',
    more: [],
    colour: 'red',
  };
  for (const [field, value] of Object.entries(faults)) {
    const faulty = { ...good, [field]: value };
    expect({ field, good: form.strict().safeParse(faulty).success }).toEqual({ field, good: false });
    expect({ field, fault: await fault(schema, faulty) }).toMatchObject({
      fault: expect.stringContaining(`decision.${field}`),
    });
  }
});

it('agrees with a full validator on any schema of the subset and any value', async () => {
  const keys = fc.constantFrom('a', 'b', 'c');
  const scalar = fc.constantFrom('', 'a', 'ab', 'abc', 'Z', -1, 0, 1, 1.5, 2, true, false, null);
  const anyValue = (depth: number): fc.Arbitrary<unknown> =>
    depth === 0
      ? scalar
      : fc.oneof(
          scalar,
          fc.array(anyValue(depth - 1), { maxLength: 3 }),
          fc.dictionary(keys, anyValue(depth - 1), { maxKeys: 3 }),
        );
  const types = fc.constantFrom('null', 'boolean', 'integer', 'number', 'string', 'array', 'object');
  const leaf = {
    type: fc.oneof(types, fc.uniqueArray(types, { minLength: 1, maxLength: 3 })),
    enum: fc.uniqueArray(scalar, { minLength: 1, maxLength: 6 }),
    const: scalar,
    required: fc.uniqueArray(keys, { maxLength: 2 }),
    additionalProperties: fc.boolean(),
    minItems: fc.nat({ max: 2 }),
    maxItems: fc.integer({ min: 2, max: 3 }),
    minLength: fc.nat({ max: 2 }),
    maxLength: fc.integer({ min: 2, max: 3 }),
    pattern: fc.constantFrom('^a', 'b$', '^(?:[a-z]*)$'),
    minimum: fc.integer({ min: -1, max: 1 }),
    maximum: fc.integer({ min: 1, max: 2 }),
    exclusiveMinimum: fc.integer({ min: -1, max: 0 }),
    exclusiveMaximum: fc.integer({ min: 1, max: 2 }),
  };
  // A few keywords each, or hardly any value would fit.
  const schemaOf = (depth: number): fc.Arbitrary<Row> => {
    const inner = depth === 0 ? fc.constant({}) : schemaOf(depth - 1);
    const keywords: Record<string, fc.Arbitrary<unknown>> = {
      ...leaf,
      items: inner,
      properties: fc.dictionary(keys, inner, { maxKeys: 3 }),
      anyOf: fc.array(inner, { minLength: 1, maxLength: 2 }),
    };
    const names = fc.uniqueArray(fc.constantFrom(...Object.keys(keywords)), { maxLength: 3 });
    return names.chain((chosen) =>
      fc.record(
        Object.fromEntries(chosen.map((name) => [name, keywords[name] ?? scalar])) as Record<
          string,
          fc.Arbitrary<unknown>
        >,
      ),
    );
  };
  const ajv = new Ajv({ strict: false });
  const pairs = fc.sample(fc.tuple(schemaOf(2), anyValue(2)), { numRuns: 1000, seed: 20261122 });
  const { rows } = await engine.sql.query<{ place: number; fault: string | null }>(
    `select (p.ordinality - 1)::int as place, millrace.schema_fault(p.value -> 0, p.value -> 1, 'decision') as fault
     from jsonb_array_elements($1) with ordinality p order by p.ordinality`,
    [json(pairs)],
  );
  let sound = 0;
  for (const { place, fault: found } of rows) {
    const [schema, value] = pairs[place] as [object, unknown];
    const valid = ajv.validate(schema, value);
    sound += valid ? 1 : 0;
    expect({ schema, value, valid: found === null, found }).toEqual({ schema, value, valid, found });
  }
  expect(rows).toHaveLength(1000);
  expect(sound).toBeGreaterThan(100);
  expect(sound).toBeLessThan(900);
});
