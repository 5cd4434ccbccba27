// Loads the definitions of a project: TypeScript, which Node does not run, with packages that the project may not have.
import fs from 'node:fs';
import { isBuiltin, SourceMap } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { type BuildFailure, build, type Plugin, stop } from 'esbuild';
import { runForeign } from './run-foreign.ts';
import { packageFolder } from './shipped.ts';

/** Why files cannot be loaded. Its message begins with the place where that is known, such as `supabase/functions/a/b.ts:3`. */
export class LoadError extends Error {
  readonly place: string | undefined;
  /** Whether a stand-in of a package that the project imports may be to blame. */
  readonly mayBeStandIn: boolean;

  constructor(place: string | undefined, text: string, mayBeStandIn = false) {
    super(place ? `${place}: ${text}` : text);
    this.place = place;
    this.mayBeStandIn = mayBeStandIn;
  }
}

/**
 * Loads these files in one bundle, so that a module which two of them import is one object. Resolves to the exports of
 * each, in the order given. Throws a LoadError.
 *
 * @param instead Texts by their files, read in place of the files' own.
 * @param packages Of packages other than zod: `bundled`, replaced by `stand-ins`, or left to Node, which loads those that are
 * `installed`.
 */
export async function loadModules(
  files: string[],
  {
    instead = new Map(),
    packages = 'bundled',
  }: { instead?: Map<string, string>; packages?: 'bundled' | 'stand-ins' | 'installed' } = {},
): Promise<Record<string, unknown>[]> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-'));
  try {
    const outfile = path.join(folder, 'definitions.mjs');
    const stoodIn = new Set<string>();
    const contents = files.map((file, at) => `export * as file${at} from ${JSON.stringify(file)};`).join('\n');
    await build({
      stdin: { contents, resolveDir: path.dirname(files[0] ?? folder), loader: 'ts' },
      bundle: true,
      format: 'esm',
      platform: 'node',
      sourcemap: 'external',
      sourcesContent: false,
      logLevel: 'silent',
      // Deno reads no tsconfig.json.
      tsconfigRaw: {},
      nodePaths: nodeModules(),
      plugins: [
        denoSpecifiers,
        zodLeftToNode,
        ...(packages === 'stand-ins' ? [packageStandIns(stoodIn)] : []),
        ...(packages === 'installed' ? [packagesLeftToNode] : []),
        readInstead(instead),
      ],
      outfile,
    }).catch((failure: BuildFailure) => {
      const { location, text } = failure.errors?.[0] ?? { text: failure.message };
      throw new LoadError(location ? placeOf(location.file, location.line) : undefined, text);
    });
    const modules = await runForeign<Record<string, Record<string, unknown>>>(
      () => import(pathToFileURL(outfile).href),
    ).catch((thrown: unknown) => {
      throw new LoadError(
        throwerOf(thrown, outfile),
        thrown instanceof Error ? thrown.message : `throws ${inspect(thrown)}`,
        stoodIn.size > 0 && (thrown instanceof TypeError || thrown instanceof RangeError),
      );
    });
    return files.map((_, at) => modules[`file${at}`] ?? {});
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Ends the process of esbuild, which would stay as long as this one; a later build starts another. */
export const endBuilds = (): Promise<void> => stop();

const placeOf = (file: string, line: number) =>
  `${path.posix.join('supabase/functions', file.split(path.sep).join('/').split('supabase/functions/').at(-1) ?? '')}:${line}`;

/** Returns the line of the project's own code, not of the runtime that it calls, from which an error came. */
function throwerOf(thrown: unknown, outfile: string): string | undefined {
  const map = new SourceMap(JSON.parse(fs.readFileSync(`${outfile}.map`, 'utf8')));
  const frames = `${(thrown as Error)?.stack}`.matchAll(/definitions\.mjs:(\d+):(\d+)/g);
  return [...frames]
    .map(([, line, column]) => map.findEntry(Number(line) - 1, Number(column) - 1))
    .flatMap((entry) => ('originalSource' in entry ? [placeOf(entry.originalSource, entry.originalLine + 1)] : []))
    .find((place) => !/\/_millrace\/|\/node_modules\//.test(place));
}

/** Returns where this package's own packages are, for a project that has none: beside it, or below it. */
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

/**
 * Has Node load this package's zod, which would make up nine tenths of a bundle. Deno loads the same one, by deno.json,
 * whichever the project has for its other code. Packages resolve their own imports from their own folders.
 */
const zodLeftToNode: Plugin = {
  name: 'zod-left-to-node',
  setup(bundle) {
    bundle.onResolve({ filter: /^zod(\/|$)/ }, async ({ path: specifier, importer, kind, pluginData }) => {
      if (pluginData === 'found' || importer.split(path.sep).includes('node_modules')) return undefined;
      const found = await bundle.resolve(specifier, { resolveDir: packageFolder, kind, pluginData: 'found' });
      return found.path.endsWith('.js') ? { path: pathToFileURL(found.path).href, external: true } : undefined;
    });
  },
};

/** Has Node load the packages that the project has: one with compiled parts cannot be bundled. */
const packagesLeftToNode: Plugin = {
  name: 'packages-left-to-node',
  setup(bundle) {
    bundle.onResolve({ filter: /^[^./]/ }, async ({ path: specifier, resolveDir, kind, pluginData }) => {
      const isOwn = kind === 'entry-point' || path.isAbsolute(specifier) || isBuiltin(specifier);
      if (isOwn || pluginData === 'found') return undefined;
      const found = await bundle.resolve(specifier, { resolveDir, kind, pluginData: 'found' });
      return found.errors.length > 0 ? found : { path: pathToFileURL(found.path).href, external: true };
    });
  },
};

/**
 * A module that has every export: each can be called, constructed, extended and asked for anything. Deno finds packages by each
 * function's deno.json, and this machine may have none of them.
 */
const anything = `
const get = (target, key) =>
  key === 'prototype' ? target.prototype
  : key === Symbol.toPrimitive ? () => ''
  : key === 'then' || key === '__esModule' || typeof key === 'symbol' ? undefined
  : any;
const names = new Proxy({}, { get });
const any = new Proxy(function () {}, {
  get,
  getPrototypeOf: () => names,
  apply: () => any,
  construct: (target, given, by) => (by === any ? any : Reflect.construct(target, given, by)),
});
module.exports = any;`;

/** Stands in for every package but zod, whose schemas are what handlers are read for. `stoodIn` gets those that the project imports. */
const packageStandIns = (stoodIn: Set<string>): Plugin => ({
  name: 'package-stand-ins',
  setup(bundle) {
    bundle.onResolve({ filter: /^[^./]/ }, ({ path: specifier, importer, kind }) => {
      const isOwn = kind === 'entry-point' || path.isAbsolute(specifier) || /^zod(\/|$)/.test(specifier);
      if (isOwn || isBuiltin(specifier)) return undefined;
      if (!importer.split(path.sep).includes('_millrace')) stoodIn.add(specifier);
      return { path: 'anything', namespace: 'stand-in' };
    });
    bundle.onLoad({ filter: /.*/, namespace: 'stand-in' }, () => ({ contents: anything, loader: 'js' }));
  },
});

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
