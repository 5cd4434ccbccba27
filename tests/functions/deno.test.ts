import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'smol-toml';
import { expect, test } from 'vitest';

const root = path.join(import.meta.dirname, '../..');
const functions = path.join(root, 'supabase/functions');
const readJson = (file: string) => JSON.parse(readFileSync(path.join(root, file), 'utf8'));
const deployed = readdirSync(functions).filter((name) => existsSync(path.join(functions, name, 'index.ts')));

test('deno.json and package.json name the same versions of the same libraries', () => {
  const { imports } = readJson('supabase/functions/deno.json') as { imports: Record<string, string> };
  const { dependencies } = readJson('package.json') as { dependencies: Record<string, string> };
  const named = Object.values(imports).map((target) => target.match(/^npm:\/?((?:@[^/]+\/)?[^@/]+)@([^/]+)/)?.slice(1));
  expect(Object.fromEntries(named as [string, string][])).toEqual(dependencies);
});

test('every bare import of the functions is mapped for Deno', () => {
  const { imports } = readJson('supabase/functions/deno.json') as { imports: Record<string, string> };
  const files = readdirSync(functions, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const used = new Set(
    files.flatMap((file) =>
      [...readFileSync(path.join(functions, file), 'utf8').matchAll(/ from '([^'.][^']*)'/g)].map(
        (match) => match[1] ?? '',
      ),
    ),
  );
  expect(used.size).toBeGreaterThan(5);
  for (const name of used) {
    const mapped = Object.keys(imports).some((key) => key === name || (key.endsWith('/') && name.startsWith(key)));
    expect(mapped || name.startsWith('node:'), name).toBe(true);
  }
});

test('each stage of leads has the function its definition names', async () => {
  const { leads } = await import('../../supabase/functions/_pipelines/leads.ts');
  for (const stage of Object.values(leads.stages)) expect(deployed).toContain('function' in stage && stage.function);
  expect(deployed).toEqual(expect.arrayContaining(['job-complete', 'job-poll']));
});

test('every function is deployed with the one import map, and checks its callers itself', () => {
  const config = parse(readFileSync(path.join(root, 'supabase/config.toml'), 'utf8'));
  const entry = { verify_jwt: false, import_map: './functions/deno.json' };
  expect(config.functions).toEqual(Object.fromEntries(deployed.map((name) => [name, entry])));
  expect(existsSync(path.join(root, 'supabase', entry.import_map))).toBe(true);
});

test('every function loads in Deno', async () => {
  const platform = readdirSync(path.join(root, 'node_modules/@deno'))[0] as string;
  const deno = path.join(root, 'node_modules/@deno', platform, 'deno');
  // Serving is replaced, so that each function ends as soon as it has loaded.
  const load = `
    let served = 0;
    Deno.serve = () => { served++; };
    for (const name of ${JSON.stringify(deployed)}) await import('file://${functions}/' + name + '/index.ts');
    console.log(served);
  `;
  const args = ['--no-lock', '--node-modules-dir=manual', '--config', path.join(functions, 'deno.json')];
  const { stdout } = await promisify(execFile)(deno, ['eval', ...args, load], { cwd: functions });
  expect(Number(stdout)).toBe(deployed.length);
});
