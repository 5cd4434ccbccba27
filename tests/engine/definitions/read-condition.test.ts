// The command add reads a condition without a database: whatever it says, Postgres says too.
import fc from 'fast-check';
import { expect } from 'vitest';
import { conditionFault, isJsonPath } from '../../../cli/project/read-condition.ts';
import { test } from '../../support/engine.ts';

const pieces = [
  ...[
    '$',
    '$.entity.kind',
    '$.needs.a."b c"',
    '@',
    '@.x',
    'last',
    '"new"',
    "'new'",
    '12',
    '0.5',
    '01',
    'true',
    'null',
    'x',
  ],
  ...[
    '==',
    '=',
    '!=',
    '<>',
    '<',
    '>=',
    '&&',
    '||',
    'and',
    '!',
    '+',
    '-',
    '*',
    '/',
    '%',
    '.',
    ',',
    '(',
    ')',
    '[',
    ']',
    '{',
    '}',
  ],
  ...[
    '[*]',
    '[0 to 2]',
    '[last]',
    '.*',
    '.**',
    '.**{1 to last}',
    '.size()',
    '.type()',
    '.sise()',
    '.double()',
    '.length',
  ],
  ...[
    '? (@ > 1)',
    '?(@.x == "y")',
    'exists',
    'exists($.entity.tags[*])',
    'starts with "a"',
    'like_regex "^a"',
    'flag "i"',
  ],
  ...['is unknown', '(1 == 1)', '/* no */', 'strict', 'lax', '$x', '.datetime()'],
];
/** Most texts are a whole condition with one slip, and some are any pieces at all. */
const whole = fc
  .tuple(
    fc.constantFrom(
      '$.entity.kind',
      '$.needs.a[*].b ? (@.x > 1)',
      'exists($.a ? (@ == 1))',
      '($.a + 1) * 2',
      '-$.a.size()',
    ),
    fc.constantFrom('== "new"', '> 1', '', '!= null', 'starts with "a"', 'like_regex "a" flag "i"'),
    fc.constantFrom('', '&& $.entity.b == 1', '|| !($.a == 1)', '&& ($.a > 1) is unknown'),
  )
  .map((parts) => parts.join(' '));
const slipped = fc
  .tuple(whole, fc.nat(60), fc.constantFrom('', ...pieces))
  .map(([text, at, piece]) => `${text.slice(0, at)} ${piece} ${text.slice(at + 1)}`);
const any = fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 7 }).map((parts) => parts.join(' '));

test('a condition is read as Postgres reads it', async ({ engine }) => {
  const texts = fc.sample(fc.oneof(whole, slipped, slipped, any), { numRuns: 3_000, seed: 40 });
  const faults = await engine.rows<{ text: string; is_path: boolean }>(
    `select t.text, millrace.input_fault(t.text, 'jsonpath') is null as is_path from unnest($1::text[]) t(text)`,
    [texts],
  );
  const others = faults.filter(({ text, is_path }) => isJsonPath(text) !== is_path);
  expect(others.slice(0, 10)).toEqual([]);
  expect(faults.filter(({ is_path }) => is_path).length).toBeGreaterThan(500);
});

test('a condition is true or false of a row, and what is wrong with another is told', () => {
  for (const condition of [
    '$.entity.kind == "scan"',
    'exists($.entity.tags[*] ? (@ == "new"))',
    '!($.a > 1)',
    'true',
  ]) {
    expect(conditionFault(condition)).toBeUndefined();
  }
  expect(conditionFault('$.entity.urgent')).toMatch(/^it is neither true nor false: compare/);
  expect(conditionFault("$.entity.kind == 'scan'")).toBe(`syntax error at or near "'scan'"`);
  expect(conditionFault('$.entity.kind == "scan" and $.a > 1')).toBe('syntax error at or near "and"');
  expect(conditionFault('($.a > 1')).toBe('it ends too soon');
});
