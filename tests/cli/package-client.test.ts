// @millrace/client as npm gets it: small, typed, and nothing but a browser's JavaScript.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { pipelineTypes } from '../../cli/sync/pipeline-types.ts';
import { checked } from '../support/definitions.ts';

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
  for (const name of ['@supabase', 'undici-types', '@types', 'preact'])
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

/** The files of a page's project beside `page.ts`: the page of docs/progress.md, with the types that `sync --types` writes. */
function writeProject(): void {
  const [, documented = ''] = fs.readFileSync(path.join(root, 'docs', 'progress.md'), 'utf8').split('```tsx\n');
  const triage = { kind: 'manual' } as const;
  const tickets = checked({ name: 'tickets', entity: { table: 'public.tickets', key: 'id' }, stages: { triage } });
  const outputs = new Map([['tickets', { triage: z.object({ urgent: z.boolean() }) }]]);
  // React's types are Preact's, as in the project.
  const paths = { react: ['./node_modules/preact/compat/src/index.d.ts'] };
  const compilerOptions = {
    ...{ noEmit: true, strict: true, module: 'esnext', moduleResolution: 'bundler', types: [], skipLibCheck: true },
    ...{ target: 'es2022', lib: ['es2022', 'dom'], jsx: 'react-jsx', jsxImportSource: 'preact', paths },
  };
  const files = {
    'App.tsx': documented.split('```')[0] ?? '',
    'pipelines.ts': pipelineTypes([tickets], outputs),
    'env.d.ts': 'interface ImportMeta { env: Record<string, string> }',
    'tsconfig.json': JSON.stringify({ compilerOptions, include: ['*.ts', '*.tsx'] }),
  };
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(project, name), text);
}

test('a page’s code is checked by the types of its pipeline, and the page of docs/progress.md passes', () => {
  writeProject();
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
    try {
      const tsc = path.join(root, 'node_modules', '.bin', 'tsc');
      return execFileSync(tsc, ['-p', '.', '--pretty', 'false'], { cwd: project, encoding: 'utf8' });
    } catch (error) {
      return (error as { stdout: string }).stdout;
    }
  };
  expect(faults('scrape')).toBe('');
  expect(faults('scrap')).toContain(`Property 'scrap' does not exist`);
});
