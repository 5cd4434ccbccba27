// Runs before `npm pack -w @millrace/test`. Bundles the helpers to JavaScript in files that are called .mts: Vitest and tsx load
// those by their own loader, so that a file of the project is one module for a test and for the helpers.
import fs from 'node:fs';
import path from 'node:path';
import { build, type Plugin } from 'esbuild';

const folder = path.join(import.meta.dirname, '..', 'packages', 'test');
const dist = path.join(folder, 'dist');

/** Postgres comes with @millrace/dev. */
const embeddedPostgres: Plugin = {
  name: 'embedded-postgres',
  setup(bundle) {
    bundle.onResolve({ filter: /local\/platform\/embedded\.ts$/ }, () => ({
      path: '@millrace/dev/embedded',
      external: true,
    }));
  },
};

fs.rmSync(dist, { recursive: true, force: true });
await build({
  entryPoints: ['index', 'setup'].map((name) => path.join(folder, `${name}.ts`)),
  outdir: dist,
  outExtension: { '.js': '.mts' },
  bundle: true,
  splitting: true,
  chunkNames: 'shared-[hash]',
  format: 'esm',
  platform: 'node',
  target: 'node20',
  mainFields: ['module', 'main'],
  external: ['esbuild', 'zod'],
  plugins: [embeddedPostgres],
  logLevel: 'warning',
});
