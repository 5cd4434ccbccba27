// @millrace/client as npm gets it: small, typed, and nothing but a browser's JavaScript.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = path.join(import.meta.dirname, '..', '..');
let project: string;
let folder: string;

beforeAll(() => {
  project = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-client-'));
  const pack = ['pack', '-w', '@millrace/client', '--json', '--pack-destination', project];
  const told = execFileSync('npm', pack, { cwd: root, encoding: 'utf8' });
  const [{ filename }] = JSON.parse(told.slice(told.indexOf('[\n')));
  folder = path.join(project, 'node_modules', '@millrace', 'client');
  fs.mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['xzf', path.join(project, filename), '--strip-components=1', '-C', folder]);
  for (const name of ['@supabase', 'undici-types', '@types'])
    fs.symlinkSync(path.join(root, 'node_modules', name), path.join(project, 'node_modules', name));
});
afterAll(() => fs.rmSync(project, { recursive: true, force: true }));

test('the package needs supabase-js as a peer, React where its hooks are used, and has at most 6 kB where it is loaded', async () => {
  const { dependencies, peerDependencies } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
  expect(dependencies).toBeUndefined();
  expect(Object.keys(peerDependencies)).toEqual(['@supabase/supabase-js', 'react']);
  const { outputFiles } = await build({
    stdin: { contents: `export * from '@millrace/client'`, resolveDir: project },
    bundle: true,
    minify: true,
    format: 'esm',
    write: false,
  });
  expect(gzipSync(outputFiles[0]?.contents ?? '').length).toBeLessThan(6000);
});

test('a page’s code is checked by the types of its pipeline', () => {
  const page = (stage: string) => `
    import type { SupabaseClient } from '@supabase/supabase-js';
    import { watchRow } from '@millrace/client';
    interface Leads { pipeline: 'leads'; stages: { scrape: { result: { pages: number }; error: 'no_site' } } }
    export async function show(supabase: SupabaseClient): Promise<void> {
      for await (const { stages } of watchRow<Leads>(supabase, { pipeline: 'leads', key: 7 }))
        if (stages.${stage}.error?.code === 'no_site') return;
    }`;
  const faults = (stage: string): string => {
    fs.writeFileSync(path.join(project, 'page.ts'), page(stage));
    const options = ['--noEmit', '--strict', '--module', 'esnext', '--moduleResolution', 'bundler', '--types', ''];
    const args = [...options, '--target', 'es2022', '--lib', 'es2022,dom', '--skipLibCheck', 'page.ts'];
    try {
      return execFileSync(path.join(root, 'node_modules/.bin/tsc'), args, { cwd: project, encoding: 'utf8' });
    } catch (error) {
      return (error as { stdout: string }).stdout;
    }
  };
  expect(faults('scrape')).toBe('');
  expect(faults('scrap')).toContain(`Property 'scrap' does not exist`);
});
