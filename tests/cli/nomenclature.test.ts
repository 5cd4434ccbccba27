import { expect, it } from 'vitest';
import { wordsIn } from '../../tools/check/nomenclature.ts';

it.each([
  'perform millrace.fold(1);',
  'perform millrace.fold_figures();',
  'perform millrace.judge_rules();',
  '-- Rings the function.',
  'select lane from x',
  "await rpc('millrace_ring')",
  'const openDoor = () => {};',
  'export function DeedButton() {}',
])('a word that the nomenclature has replaced is found: %s', (line) => {
  expect(wordsIn('engine/kernel/x.sql', `select 1;\n${line}`)).toEqual([
    expect.stringMatching(/^engine\/kernel\/x\.sql:2: ".+": docs\/nomenclature\.md has the word to use$/),
  ]);
});

it('words that only contain one are left alone', () => {
  expect(wordsIn('x.ts', 'const string = folder(during, planes, manifold)')).toEqual([]);
});
