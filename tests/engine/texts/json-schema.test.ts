import Ajv from 'ajv';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createEngine, type Engine, type Row } from '../../support/engine.ts';

let engine: Engine;

beforeAll(async () => {
  engine = await createEngine();
});
afterAll(() => engine.database.drop());

const json = JSON.stringify;
const fault = (schema: unknown, value: unknown) =>
  engine.value<string | null>('select millrace.schema_fault($1, $2, $3)', [json(schema), json(value), 'decision']);

const object = (properties: Row, more: Row = {}) => ({ type: 'object', properties, ...more });

it('looks at each part once, however deep the fault is', async () => {
  let [schema, value, path]: [unknown, unknown, string] = [{ type: 'integer' }, 'x', 'decision'];
  for (let depth = 0; depth < 16; depth += 1) {
    [schema, value, path] = [object({ a: schema }), { a: value }, `${path}.a`];
  }
  await engine.sql.query(`set statement_timeout = '5s'`);
  expect(await fault(schema, value)).toBe(`${path} is "x", but must be of type integer`);
  await engine.sql.query('reset statement_timeout');
});

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
    ['one item', { minItems: 2 }, [1], 'decision has 1 item, but must have at least 2'],
    ['an empty text', { minLength: 1 }, '', 'decision is "", but must have at least 1 character'],
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
    expect(await fault(schema, value)).toBe(message);
  });

  it('a long value is cut', async () => {
    expect(await fault({ type: 'number' }, 'x'.repeat(5000))).toMatch(
      /^decision is "x{99}…, but must be of type number$/,
    );
  });
});

it('the database takes the JSON schema that zod makes, and finds the same faults', async () => {
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
