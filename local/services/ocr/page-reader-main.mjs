// A program of its own, so it brings its own way to TypeScript: a few files, made into one. A loader would look through all packages
// as well, which costs a reader as much again as everything else that it loads.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, stop } from 'esbuild';

const program = path.join(import.meta.dirname, 'dist', `answer-questions-${process.pid}.mjs`);
await build({
  entryPoints: [path.join(import.meta.dirname, 'answer-questions.ts')],
  outfile: program,
  bundle: true,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  logLevel: 'silent',
});
await stop();
const remove = () => fs.rmSync(program, { force: true });
process.once('exit', remove);
await import(pathToFileURL(program).href);
remove();
