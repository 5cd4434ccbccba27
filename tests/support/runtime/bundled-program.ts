// Programs of this project as one file of JavaScript each, made once for a whole Vitest run: half of what the start of a large one takes
// is the loader for TypeScript, which each package goes through as well.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { inject } from 'vitest';

const root = path.join(import.meta.dirname, '..', '..', '..');

/** Bundles a program such as `tools/stack.ts`. Resolves to what takes its place, seen from the project's folder. */
export async function bundledProgram(source: string): Promise<string> {
  const outfile = path.join(inject('runFolder'), 'bundled', `${path.basename(source, '.ts')}-${process.pid}.mjs`);
  await build({
    entryPoints: [path.join(root, source)],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: [],
    plugins: [fromWhereItLies],
    logLevel: 'error',
  });
  return path.relative(root, outfile);
}

/** Keeps what a file knows of its place, and imports packages from theirs. */
const fromWhereItLies: Plugin = {
  name: 'from-where-it-lies',
  setup(bundle) {
    bundle.onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
      const known = { dirname: path.dirname(file), filename: file, url: pathToFileURL(file).href };
      const text = fs.readFileSync(file, 'utf8');
      const contents = text.replaceAll(/\bimport\.meta\.(dirname|filename|url)\b/g, (_, name: keyof typeof known) =>
        JSON.stringify(known[name]),
      );
      return { contents, loader: 'ts' };
    });
    bundle.onResolve({ filter: /^[^./]/ }, async ({ path: name, resolveDir, kind, pluginData }) => {
      if (pluginData || kind === 'entry-point') return undefined;
      const { path: file, errors } = await bundle.resolve(name, { resolveDir, kind, pluginData: true });
      return errors.length > 0 ? { errors } : { path: file, external: true };
    });
  },
};
