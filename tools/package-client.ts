// Runs before `npm pack -w @millrace/client`. Builds what a browser loads, and the types beside it.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';

const root = path.join(import.meta.dirname, '..');
const folder = path.join(root, 'packages', 'client');
const dist = path.join(folder, 'dist');
const entryPoints = ['index', 'react'].map((name) => path.join(folder, `${name}.ts`));

fs.rmSync(dist, { recursive: true, force: true });
await build({
  entryPoints,
  outdir: dist,
  bundle: true,
  splitting: true,
  chunkNames: 'shared-[hash]',
  format: 'esm',
  target: 'es2022',
  minify: true,
  packages: 'external',
  logLevel: 'warning',
});
execFileSync(path.join(root, 'node_modules', '.bin', 'tsc'), ['-p', folder], { stdio: 'inherit' });
for (const name of fs.readdirSync(dist).filter((file) => file.endsWith('.d.ts'))) {
  const file = path.join(dist, name);
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replaceAll(/(from '\.\/\w+)\.ts'/g, "$1.js'"));
}
