// Runs before `npm pack -w @millrace/dev`. Bundles the stack and the trial to JavaScript, since Node and Deno refuse
// TypeScript below node_modules, and puts the operator's page beside them.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { build } from 'esbuild';
import { readTrialFiles } from '../cli/trial/trial-files.ts';
import { buildPages } from './pages/build-pages.ts';
import { compressed, packPage } from './pages/pack-page.ts';

const root = path.join(import.meta.dirname, '..');
const platform = path.join(root, 'local', 'platform');
const dist = path.join(platform, 'dist');
const require = createRequire(import.meta.url);

await buildPages(root);
fs.rmSync(dist, { recursive: true, force: true });
const alike = { bundle: true, format: 'esm', logLevel: 'warning' } as const;
await build({
  ...alike,
  entryPoints: {
    dev: path.join(platform, 'dev.ts'),
    embedded: path.join(platform, 'embedded.ts'),
    trial: path.join(root, 'cli', 'trial', 'try-hosted.ts'),
  },
  // Code that several entries need is bundled once.
  splitting: true,
  chunkNames: 'shared-[hash]',
  outdir: dist,
  outExtension: { '.js': '.mjs' },
  platform: 'node',
  target: 'node20',
  mainFields: ['module', 'main'],
  external: ['pg-native'],
  // Postgres' parser looks for its program beside itself.
  define: { __dirname: 'import.meta.dirname' },
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module';\nconst require = requireFrom(import.meta.url);",
  },
});
await build({
  ...alike,
  entryPoints: [path.join(platform, 'functions', 'worker-main.ts')],
  outfile: path.join(dist, 'worker-main.js'),
  platform: 'neutral',
  external: ['node:*'],
});
const parser = path.dirname(require.resolve('@libpg-query/parser'));
fs.copyFileSync(path.join(parser, 'libpg-query.wasm'), path.join(dist, 'libpg-query.wasm'));
packPage(root, dist);
const trial = readTrialFiles(path.join(root, 'cli', 'trial'));
fs.writeFileSync(path.join(dist, 'trial.json.br'), compressed(JSON.stringify(trial)));
