import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { checkDocExamples } from '../../tools/check/doc-examples.ts';

/** The faults that the check finds in a project whose public entry hands on this one file. */
async function checked(text: string): Promise<string> {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'examples-'));
  onTestFinished(() => fs.rmSync(root, { recursive: true }));
  const runtime = path.join(root, 'supabase', 'functions', '_millrace');
  fs.mkdirSync(runtime, { recursive: true });
  fs.writeFileSync(path.join(runtime, 'mod.ts'), "export { add, type Sum } from './add.ts';\n");
  fs.writeFileSync(path.join(runtime, 'add.ts'), text);
  const compilerOptions = {
    strict: true,
    module: 'esnext',
    moduleResolution: 'bundler',
    allowImportingTsExtensions: true,
  };
  fs.writeFileSync(
    path.join(root, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { ...compilerOptions, types: [] } }),
  );
  return checkDocExamples(root);
}

/** A public function under a docstring of these lines. */
function documented(...lines: string[]): string {
  const comment = ['/**', ' * Adds.', ...lines.map((line) => ` * ${line}`), ' */'];
  const body = ['export function add(one: number, other: number): Sum {', '  return one + other;', '}', ''];
  return ['export type Sum = number;', ...comment, ...body].join('\n');
}

const withExample = (code: string) => documented('', '@example', '```ts', code, '```');

test('an example that compiles passes, with what it does not import itself', async () => {
  expect(await checked(withExample('const sum: Sum = add(1, 2);'))).toBe('');
});

test('a public function without an example is named', async () => {
  expect(await checked(documented())).toContain('supabase/functions/_millrace/add.ts: add has no @example');
});

test('an example that does not compile is named, with its place in the docstring', async () => {
  const found = await checked(withExample("add('1', 2);"));
  expect(found).toMatch(/^supabase\/functions\/_millrace\/add\.ts:7: error TS2345/);
});

test('a function that is marked as internal needs no example', async () => {
  expect(await checked(documented('', '@internal'))).toBe('');
});
