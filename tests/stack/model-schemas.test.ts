import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { answerSchema } from '../../local/services/model/answer-schema.ts';
import type { JsonSchema } from '../../local/services/model/json-schema.ts';
import { Material } from '../../local/services/model/material.ts';
import { readUnits } from '../../local/services/model/source-text.ts';
import { huntLength } from '../support/hunt-length.ts';

const text = `# Thornfield Repair Café
The repair café opens on 14 Saturdays a year and has mended 1,250 toasters since 2019.
Volunteers bring soldering irons; visitors bring lamps, radios and patience. Nobody is asked for money.
Write to hello@thornfield.example or see https://thornfield.example/dates for the dates. The next one is on 2031-05-17.
The hall has the room number B-204.`;

function fill(schema: unknown, source = text): unknown {
  return answerSchema(schema as JsonSchema, new Material(readUnits([source]), source), 'schema');
}

const ajv = new Ajv2020({ strict: false, logger: false });
addFormats(ajv);

function expectValid(schema: object, source = text): unknown {
  const value = fill(schema, source);
  const isValid = ajv.validate(schema, value);
  expect(ajv.errors ?? [], `${JSON.stringify(schema)} → ${JSON.stringify(value)}`).toEqual([]);
  expect(isValid).toBe(true);
  return value;
}

const object = (properties: Record<string, unknown>, more: object = {}) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
});

describe('a schema is filled with a valid value', () => {
  test.each<[string, object]>([
    ['a string', { type: 'string' }],
    ['a short string', { type: 'string', maxLength: 12 }],
    ['a string of one character', { type: 'string', maxLength: 1, minLength: 1 }],
    ['a long string', { type: 'string', minLength: 2000, maxLength: 2100 }],
    ['an empty string', { type: 'string', maxLength: 0 }],
    ['a pattern found in the text', { type: 'string', pattern: '^[A-Z]-\\d{3}$' }],
    ['a pattern that has to be made up', { type: 'string', pattern: '^[a-f]{4}:[0-9]{2,3}$' }],
    ['a pattern within a length', { type: 'string', pattern: '^[a-z]+$', minLength: 3, maxLength: 5 }],
    ...['email', 'uri', 'date', 'date-time', 'time', 'uuid', 'ipv4', 'ipv6', 'hostname', 'duration'].map(
      (format): [string, object] => [`the format ${format}`, { type: 'string', format }],
    ),
    ['an unknown format', { type: 'string', format: 'something-else' }],
    ['an integer', { type: 'integer' }],
    ['an integer within bounds', { type: 'integer', minimum: 3, maximum: 5 }],
    ['a number above and below', { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 }],
    ['a multiple', { type: 'integer', multipleOf: 7, minimum: 100 }],
    ['a broken multiple', { type: 'number', multipleOf: 0.25, minimum: 0.3, maximum: 0.6 }],
    ['a negative number', { type: 'number', maximum: -5 }],
    ['a boolean', { type: 'boolean' }],
    ['null', { type: 'null' }],
    ['a type or null', { type: ['string', 'null'] }],
    ['a constant', { const: { a: [1] } }],
    ['an enum', { enum: ['lamps', 'chairs'] }],
    ['an enum of numbers', { type: 'integer', enum: [1, 2] }],
    ['an array', { type: 'array', items: { type: 'string' }, minItems: 2, maxItems: 4 }],
    ['an array longer than the text', { type: 'array', items: { type: 'string' }, minItems: 30 }],
    ['an array of different values', { type: 'array', items: { enum: [1, 2, 3] }, minItems: 3, uniqueItems: true }],
    ['an empty array', { type: 'array', items: false }],
    ['a tuple', { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }], items: false, minItems: 2 }],
    ['nested objects', object({ a: object({ b: { type: 'array', items: object({ c: { type: 'number' } }) } }) })],
    ['an optional property', { type: 'object', properties: { a: { type: 'string' }, b: false } }],
    ['a required key without a schema', { type: 'object', required: ['x'] }],
    ['free keys', { type: 'object', additionalProperties: { type: 'integer' }, minProperties: 2 }],
    [
      'keys by a pattern',
      { type: 'object', patternProperties: { '^k_[a-z]{3}$': { type: 'string' } }, minProperties: 1 },
    ],
    ['keys out of an enum', { type: 'object', propertyNames: { enum: ['p', 'q'] }, minProperties: 2 }],
    ['any of', { anyOf: [{ type: 'null' }, object({ kind: { const: 'hall' }, room: { type: 'string' } })] }],
    ['any of, where the first cannot be filled', { anyOf: [{ type: 'string', pattern: '(?!)' }, { type: 'integer' }] }],
    ['one of', { oneOf: [{ type: 'integer', minimum: 10 }, { type: 'string' }] }],
    ['all of', { allOf: [object({ a: { type: 'string' } }, { additionalProperties: true }), { required: ['b'] }] }],
    ['a reference', { $ref: '#/$defs/x', $defs: { x: { type: 'string', maxLength: 20 } } }],
    [
      'a reference beside keywords',
      object({ a: { $ref: '#/$defs/x', maxLength: 9 } }, { $defs: { x: { type: 'string' } } }),
    ],
    [
      'a list that goes on',
      {
        $defs: {
          node: object({ value: { type: 'string' }, next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } }),
        },
        $ref: '#/$defs/node',
      },
    ],
    ['a tree', object({ name: { type: 'string' }, children: { type: 'array', items: { $ref: '#' } } })],
    ['anything', {}],
    ['another draft', { $schema: 'http://json-schema.org/draft-07/schema#', type: 'string' }],
  ])('%s', (_what, schema) => {
    const { $schema: _, ...rest } = schema as { $schema?: string };
    expectValid(rest);
    expectValid(rest, '');
    fill(schema);
  });

  test('whatever the bounds are', () => {
    const bounded = (min: string, max: string, most: number) =>
      fc.tuple(fc.nat(most), fc.nat(most)).map(([a, b]) => ({ [min]: Math.min(a, b), [max]: Math.max(a, b) }));
    const leaf = fc.oneof(
      bounded('minLength', 'maxLength', 300).map((bounds) => ({ type: 'string', ...bounds })),
      bounded('minimum', 'maximum', 5000).map((bounds) => ({ type: 'integer', ...bounds })),
      fc.constantFrom({ type: 'boolean' }, { type: 'string', format: 'email' }, { enum: ['radio', 'lamp', null] }),
    );
    const { schema } = fc.letrec<{ schema: object }>((tie) => ({
      schema: fc.oneof(
        { maxDepth: 3 },
        leaf,
        fc
          .dictionary(fc.string({ minLength: 1, maxLength: 8 }), tie('schema'), { maxKeys: 4, noNullPrototype: true })
          .map((all) => object(all)),
        fc
          .tuple(tie('schema'), bounded('minItems', 'maxItems', 5))
          .map(([items, bounds]) => ({ type: 'array', items, ...bounds })),
        fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
      ),
    }));
    fc.assert(
      fc.property(schema, (one) => void expectValid(one)),
      { numRuns: huntLength(40, 3000), seed: 7 },
    );
  });
});

describe('a value is looked for in the text', () => {
  test.each<[string, unknown, unknown]>([
    ['an address', { type: 'string', format: 'email' }, 'hello@thornfield.example'],
    ['a URL by its key', object({ website: { type: 'string' } }), { website: 'https://thornfield.example/dates' }],
    ['a date', { type: 'string', format: 'date' }, '2031-05-17'],
    ['a number by its name', object({ mended_toasters: { type: 'integer' } }), { mended_toasters: 1250 }],
    ['a number within bounds', { type: 'integer', minimum: 10, maximum: 20 }, 14],
    ['a name', object({ name: { type: 'string' } }), { name: 'Thornfield Repair Café' }],
    ['an enum by what is mentioned', { enum: ['chairs', 'radios', 'ships'] }, 'radios'],
    ['a yes', object({ volunteers: { type: 'boolean' } }), { volunteers: true }],
    ['a no', object({ money: { type: 'boolean' } }), { money: false }],
    [
      'a sentence by its description',
      object({ x: { type: 'string', description: 'What visitors bring' } }),
      { x: 'Volunteers bring soldering irons; visitors bring lamps, radios and patience.' },
    ],
  ])('%s', (_what, schema, expected) => {
    expect(fill(schema)).toEqual(expected);
  });

  test('under the key of JSON material', () => {
    const material =
      '<plan>{"colour": "blue", "steps": ["Dig the pond.", "Line it with clay."], "depth_cm": 80}</plan>';
    const schema = object({
      depth: { type: 'integer' },
      colour: { type: 'string' },
      steps: { type: 'array', items: { type: 'string' }, maxItems: 2 },
    });
    const value = fill(schema, material) as { steps: string[] };
    expect(value).toMatchObject({ depth: 80, colour: 'blue' });
    expect([...value.steps].sort()).toEqual(['Dig the pond.', 'Line it with clay.']);
  });

  test('leaving out menus, notices and what stands around the material', () => {
    const value = fill(
      { type: 'array', items: { type: 'string' }, minItems: 3 },
      'Write about ducks.\n<page>\nWe use cookies to improve your visit.\n\nOtters live by the weir.\n\n© All rights reserved\n</page>',
    ) as string[];
    expect(new Set(value)).toEqual(new Set(['Otters live by the weir.']));
  });

  test('a short value is cut between words', () => {
    expect(fill({ type: 'string', maxLength: 30 }, 'Visitors bring old lamps and a great deal of patience.')).toBe(
      'Visitors bring old lamps',
    );
  });
});

test.each<[string, string]>([
  ['long prose without a line break', 'The ferry leaves at nine and returns at noon. '.repeat(8000)],
  ['tags that are never closed', '<a>'.repeat(120_000)],
  ['one endless word', 'a'.repeat(400_000)],
  ['headings without end', '# '.repeat(200_000)],
  ['JSON nested without end', `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`],
])('a prompt built to be slow is answered in time: %s', (_what, prompt) => {
  const properties = Object.fromEntries(['name', 'email', 'url', 'text'].map((key) => [key, { type: 'string' }]));
  expectValid(
    object({ ...properties, number: { type: 'integer' }, host: { type: 'string', format: 'hostname' } }),
    prompt,
  );
});

describe('a schema that cannot be filled gets 400 with the path', () => {
  test.each<[string, object, RegExp]>([
    [
      'an impossible pattern',
      object({ a: object({ b: { type: 'string', pattern: '^(?!)$' } }) }),
      /a\.b: no text fits/,
    ],
    ['bounds that exclude everything', object({ n: { type: 'integer', minimum: 5, maximum: 4 } }), /n: no number/],
    ['crossed lengths', object({ s: { type: 'string', minLength: 5, maxLength: 4 } }), /s: minLength 5/],
    ['a schema that is false', object({ a: false }), /a: the schema "false"/],
    [
      'too few different values',
      object({ l: { type: 'array', items: { const: 1 }, minItems: 2, uniqueItems: true } }),
      /l: cannot find 2/,
    ],
    ['a recursion without end', object({ a: { $ref: '#' } }), /a\.a.*without end/],
    ['a recursion through all of', { allOf: [{ $ref: '#' }] }, /no JSON schema|without end/],
    [
      'a keyword that is only checked',
      { type: 'object', properties: { a: {} }, required: ['a'], not: { required: ['a'] } },
      /NOT be valid/,
    ],
    ['a reference to nothing', object({ a: { $ref: '#/$defs/none' } }), /no JSON schema.*none/],
    ['no schema at all', { type: 'animal' }, /no JSON schema/],
  ])('%s', (_what, schema, message) => {
    expect(() => fill(schema)).toThrowError(
      expect.objectContaining({ status: 400, param: 'schema', message: expect.stringMatching(message) }),
    );
  });
});
