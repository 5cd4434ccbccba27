import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readFunctionConfigs } from '../../local/platform/functions/function-config.ts';
import { checkFunctionSizes, type FunctionSize, functionSizes, graphOf } from '../../tools/check/function-sizes.ts';
import { projectFolder } from '../../tools/check/run-program.ts';

const { dependencies, devDependencies } = JSON.parse(
  fs.readFileSync(path.join(projectFolder, 'package.json'), 'utf8'),
) as Record<'dependencies' | 'devDependencies', Record<string, string>>;
const versions = { ...dependencies, ...devDependencies };
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'function-sizes-'));
let sizes: Record<string, FunctionSize>;

const runtime = "import { z } from 'zod';\nimport { PostgrestClient } from '@supabase/postgrest-js';\n";
const functions: Record<string, string> = {
  plain: `import '../_millrace/serve-stage.ts';`,
  typed: `import '../_millrace/serve-stage.ts';\nimport type OpenAI from 'openai';\nexport type Client = OpenAI;`,
  model: `import '../_services/project-client.ts';\nimport OpenAI from 'openai';`,
  reading: `import '../_millrace/serve-stage.ts';\nimport { unzipSync } from 'fflate';`,
  counting: `const { encode } = await import('gpt-tokenizer/encoding/o200k_base');`,
  millrace: `import '../_millrace/serve-stage.ts';\nimport OpenAI from 'openai';`,
};

beforeAll(async () => {
  const names = ['zod', '@supabase/postgrest-js', '@supabase/storage-js', 'openai', 'fflate', 'gpt-tokenizer'];
  const imports = Object.fromEntries(
    names.flatMap((name) => [
      [name, `npm:${name}@${versions[name]}`],
      [`${name}/`, `npm:/${name}@${versions[name]}/`],
    ]),
  );
  const config = Object.keys(functions).map((name) => `[functions.${name}]\nimport_map = "./functions/deno.json"\n`);
  const files: Record<string, string> = {
    'config.toml': config.join(''),
    'functions/deno.json': JSON.stringify({ imports }),
    'functions/_millrace/serve-stage.ts': `${runtime}console.log(z, PostgrestClient);`,
    'functions/_services/project-client.ts': `import { StorageClient } from '@supabase/storage-js';`,
    ...Object.fromEntries(Object.entries(functions).map(([name, code]) => [`functions/${name}/index.ts`, code])),
  };
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), text);
  }
  const measured = await functionSizes(path.join(folder, 'functions'));
  sizes = Object.fromEntries(measured.map((size) => [size.name, size]));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

const packagesOf = (name: string) =>
  sizes[name]?.parts
    .map((part) => part.name.replace(/@[^@]+$/, ''))
    .filter((part) => part !== 'its own files')
    .sort();

test('a function has the packages that its code imports and those they depend on, whole, and no types', () => {
  expect(packagesOf('plain')).toEqual(['@supabase/postgrest-js', 'tslib', 'zod']);
  expect(packagesOf('typed')).toEqual(packagesOf('plain'));
  expect(packagesOf('counting')).toEqual(['gpt-tokenizer']);
  // One encoding of many is imported.
  expect(sizes.counting?.bytes).toBeGreaterThan(7e6);
});

test('the budget of a function follows from what it imports beside the runtime', () => {
  const kinds = Object.fromEntries(Object.values(sizes).map(({ name, kind }) => [name, kind]));
  expect(kinds).toEqual({
    plain: 'plain',
    typed: 'plain',
    model: 'model',
    reading: 'any',
    counting: 'any',
    millrace: 'plain',
  });
});

test('a function over its budget is named with its heaviest packages', async () => {
  const lines = (await checkFunctionSizes(path.join(folder, 'functions'))).split('\n');
  expect(lines).toEqual([
    expect.stringMatching(
      /^counting: 7\.\d\d MB, at most 4\.5\. Its heaviest parts: gpt-tokenizer@\S+ 7\.\d\d, its own/,
    ),
    expect.stringMatching(
      /^millrace: 1\.\d\d MB, at most 1\.2\. Its heaviest parts: openai@\S+ 0\.\d\d, zod@\S+ 0\.\d\d, /,
    ),
  ]);
});

test('no function loads the compiler of definitions, or the schemas that it checks by', async () => {
  const own = path.join(projectFolder, 'supabase', 'functions');
  const configOf = readFunctionConfigs(own);
  for (const name of ['leads-intel', 'books-split', 'toc-find', 'millrace']) {
    const { files } = await graphOf(configOf(name));
    expect(files.filter((file) => file.includes('/_millrace/compile/'))).toEqual([]);
    expect(files.length, name).toBeGreaterThan(5);
  }
});
