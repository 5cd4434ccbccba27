import { expect, test } from 'vitest';
import { z } from 'zod';
import { definePipeline } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { classify } from '../../supabase/functions/_millrace/errors.ts';
import { validateResult } from '../../supabase/functions/_millrace/stage/validate-result.ts';

import { formOf } from '../../supabase/functions/_millrace/worker/tell-form.ts';

const schema = z.object({ title: z.string(), pages: z.array(z.object({ url: z.string() })).default([]) });

function failureOf(output: unknown, limit = 1_000) {
  try {
    validateResult(schema, output, limit);
  } catch (error) {
    return classify(error);
  }
  throw new Error('the output was accepted');
}

test('a good output is returned as the schema parses it', () => {
  expect(validateResult(schema, { title: 'T', extra: 1 }, 1_000)).toEqual({ title: 'T', pages: [] });
});

test('the path of the fault and the kind of value found are named', () => {
  const failure = failureOf({ title: 'T', pages: [{ url: 'a' }, { url: 7 }] });
  expect(failure).toMatchObject({ code: 'invalid_output', permanent: true });
  expect(failure.message).toContain('output.pages[1].url');
  expect(failure.message).toContain('found: number');
});

test('an output that is no object at all is named too', () => {
  expect(failureOf(undefined).message).toContain('found: undefined');
  expect(failureOf(null).message).toContain('found: null');
});

test.each(['a\u0000b', 'a\ud83d', '\ude00b'])('a character Postgres cannot store is refused: %j', (title) => {
  const failure = failureOf({ title });
  expect(failure).toMatchObject({ code: 'invalid_output', permanent: true });
  expect(failure.message).toContain('output.title');
});

const circle: Record<string, unknown> = { title: 'T' };
circle.pages = [{ again: circle }];
let tower: unknown = 'top';
for (let level = 0; level < 5_000; level += 1) tower = [tower];

test.each([
  [{ id: 7n }, /^output\.id is a BigInt/],
  [{ pages: [1, Number.NaN] }, /^output\.pages\[1\] is NaN/],
  [Number.NEGATIVE_INFINITY, /^output is -Infinity/],
  [{ all: circle }, /^output\.all\.pages\[0\]\.again holds itself/],
  [{ tower }, /^output\.tower\[0\].*has more than 1000 levels/],
  [{ at: { toJSON: () => 7n } }, /^output\.at is a BigInt/],
])('what JSON cannot hold is refused by its path: %#', (output, fault) => {
  for (const any of [z.any(), z.json()]) {
    try {
      validateResult(any, output, 1e6);
      throw new Error('it was accepted');
    } catch (error) {
      expect(classify(error)).toMatchObject({ code: 'invalid_output', permanent: true });
      if (any.def.type === 'any') expect((error as Error).message).toMatch(fault);
    }
  }
});

test('a part that occurs twice, side by side, is no circle', () => {
  const twice = { url: 'a' };
  expect(validateResult(schema, { title: 'T', pages: [twice, twice] }, 1_000)).toHaveProperty('pages', [twice, twice]);
});

test('characters outside the basic plane are fine', () => {
  expect(validateResult(schema, { title: '😀 漢字' }, 1_000)).toHaveProperty('title', '😀 漢字');
});

test.each([undefined, () => 1, { toJSON: () => undefined }])(
  'what JSON cannot hold is stored as null: %s',
  (output) => {
    expect(validateResult(z.any(), output, 1_000)).toBeNull();
    expect(validateResult(z.void(), undefined, 1_000)).toBeNull();
  },
);

test('a result over the limit is refused, with the way out', () => {
  const failure = failureOf({ title: 'é'.repeat(600) });
  expect(failure).toMatchObject({ code: 'result_too_large', permanent: true });
  expect(failure.message).toMatch(
    /has 12\d\d bytes and the stage allows 1000: put it into Storage and return its location/,
  );
});

test('a stage tells the schema of its result and of the columns that a person may edit, as the database reads them', () => {
  const shown = (projection: 'columns' | 'none') =>
    definePipeline({
      name: 'notes',
      entity: { table: 'public.notes', key: 'id', projection },
      stages: { read: { kind: 'function', function: 'notes-read' } },
    });
  const entity = z.object({ id: z.int(), mail: z.email(), read_status: z.string(), more: z.date() });
  const kind = z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') }), z.object({ kind: z.literal('b') })]);
  const stage = { input: z.object({ entity }), output: z.object({ kind }), pipeline: shown('columns') };
  const { result, row } = formOf(stage) as { result: object; row: { properties: object } };
  expect(JSON.stringify(result)).toContain(
    '"anyOf":[{"type":"object","properties":{"kind":{"type":"string","const":"a"}}',
  );
  expect(row).toEqual({
    type: 'object',
    minProperties: 1,
    additionalProperties: false,
    properties: { mail: { type: 'string', format: 'email' }, more: {} },
  });
  expect(
    Object.keys(
      (formOf({ ...stage, pipeline: shown('none') }) as typeof stage & { row: { properties: object } }).row.properties,
    ),
  ).toContain('read_status');
});
