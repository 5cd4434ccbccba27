// Loads the definitions of a project: TypeScript, which Node does not run, with packages that the project may not have.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { packageFolder } from './shipped.ts';

/**
 * What each file exports, in the order given. One bundle for all, so that what two of them share is the same object. `instead`: texts
 * by their files, read in the place of what is there.
 */
export async function loadModules(
  files: string[],
  instead: Map<string, string> = new Map(),
): Promise<Record<string, unknown>[]> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-'));
  try {
    const outfile = path.join(folder, 'definitions.mjs');
    const contents = files.map((file, at) => `export * as file${at} from ${JSON.stringify(file)};`).join('\n');
    await build({
      stdin: { contents, resolveDir: path.dirname(files[0] ?? folder), loader: 'ts' },
      bundle: true,
      format: 'esm',
      platform: 'node',
      logLevel: 'silent',
      nodePaths: nodeModules(),
      plugins: [denoSpecifiers, readInstead(instead)],
      outfile,
    });
    const modules = (await import(pathToFileURL(outfile).href)) as Record<string, Record<string, unknown>>;
    return files.map((_, at) => modules[`file${at}`] ?? {});
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Where this package's own packages are, for a project that has none: beside it, or below it. */
function nodeModules(): string[] {
  const folders: string[] = [];
  for (let folder = packageFolder; ; folder = path.dirname(folder)) {
    folders.push(path.join(folder, 'node_modules'));
    if (path.dirname(folder) === folder) return folders;
  }
}

/** Reads `npm:zod@4.6.7` as `zod`. */
const denoSpecifiers: Plugin = {
  name: 'deno-specifiers',
  setup(bundle) {
    bundle.onResolve({ filter: /^npm:/ }, ({ path: specifier, resolveDir, kind }) => {
      const [, name = '', below = ''] = /^npm:\/?((?:@[^/]+\/)?[^/@]+)(?:@[^/]*)?(\/.*)?$/.exec(specifier) ?? [];
      return bundle.resolve(name + below, { resolveDir, kind });
    });
  },
};

/** Reads these texts in the place of what their files hold. */
const readInstead = (texts: Map<string, string>): Plugin => ({
  name: 'read-instead',
  setup(bundle) {
    bundle.onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
      const contents = texts.get(file);
      return contents === undefined ? undefined : { contents, loader: 'ts' };
    });
  },
});
