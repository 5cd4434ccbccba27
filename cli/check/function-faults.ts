// Whether functions can be deployed and loaded: what their deno.json maps, and their handlers.
import fs from 'node:fs';
import path from 'node:path';
import { build, type Message, type Plugin } from 'esbuild';
import { readJson } from '../../local/platform/functions/project-config.ts';
import type { Project } from '../project/find-project.ts';
import { readHandlers } from '../project/load-handlers.ts';
import { modelPackage, readManifest } from '../project/shipped.ts';
import { sizeFaults } from './size-faults.ts';

/** A sentence, with the remedy, for each function that imports the runtime and could not be deployed, or not loaded. */
export async function functionFaults({ root }: Project): Promise<string[]> {
  const folder = path.join(root, 'supabase', 'functions');
  const names = fs.readdirSync(folder).filter((name) => usesRuntime(path.join(folder, name)));
  // All at once, as they share most of their files, and each alone where that fails.
  const together = await importsBelow(folder, names).catch(() => undefined);
  const looked = await Promise.all(
    names.map(async (name) => {
      try {
        const ofMap = mapFaults(folder, name);
        const { faults, isLoadable } = await importFaults(folder, name, together);
        return { name, faults: [...ofMap, ...faults], isLoadable };
      } catch (error) {
        return { name, faults: [(error as Error).message], isLoadable: false };
      }
    }),
  );
  const loadable = looked.filter(({ isLoadable }) => isLoadable).map(({ name }) => name);
  const { faults: ofLoading } = await readHandlers(folder, loadable);
  const faults = looked.map((one) => [...one.faults, ...[ofLoading.get(one.name) ?? []].flat()]);
  const sound = names.filter((_, at) => faults[at]?.length === 0);
  return [...faults.flat(), ...(await sizeFaults(folder, sound))];
}

const usesRuntime = (folder: string) => {
  const index = path.join(folder, 'index.ts');
  return fs.existsSync(index) && fs.readFileSync(index, 'utf8').includes('/_millrace/');
};

/** Returns the imports that a function's deno.json maps, by name; empty without that file. */
function importsOf(folder: string, name: string): Record<string, string> {
  const file = ['deno.json', 'deno.jsonc'].map((map) => path.join(folder, name, map)).find((map) => fs.existsSync(map));
  const said = file ? readJson(`supabase/functions/${name}/${path.basename(file)}`, fs.readFileSync(file, 'utf8')) : {};
  return (said as { imports?: Record<string, string> }).imports ?? {};
}

/** Pins that are not those that this release was tried with: two versions of zod do not know each other's schemas. */
function mapFaults(folder: string, name: string): string[] {
  const place = `supabase/functions/${name}`;
  if (fs.existsSync(path.join(folder, name, 'import_map.json'))) {
    return [
      `${place}/import_map.json is refused by \`supabase functions deploy\`: move what it maps into ${place}/deno.json.`,
    ];
  }
  if (!fs.existsSync(path.join(folder, name, 'deno.json'))) return [];
  const imports = importsOf(folder, name);
  return Object.entries(readManifest().imports)
    .filter(([key, pin]) => imports[key] !== pin)
    .map(
      ([key, pin]) =>
        `${place}/deno.json maps ${key} to ${imports[key] ?? 'nothing'}: write ${JSON.stringify(pin)}, with which the runtime is tried.`,
    );
}

/** Resolves to the packages that the files of these functions import, such as `zod`, by the function. Throws esbuild's error. */
async function importsBelow(folder: string, names: string[]): Promise<Map<string, Set<string>>> {
  const root = fs.realpathSync(folder);
  const { metafile } = await build({
    entryPoints: names.map((name) => entryOf(folder, name)),
    absWorkingDir: root,
    outdir: '.',
    write: false,
    bundle: true,
    format: 'esm',
    plugins: [leftToDeno],
    metafile: true,
    logLevel: 'silent',
    tsconfigRaw: {},
  });
  const below = (file: string, seen = new Set<string>(), found = new Set<string>()) => {
    if (seen.has(file)) return found;
    seen.add(file);
    for (const { path: imported, external } of metafile.inputs[file]?.imports ?? []) {
      if (external) found.add(imported);
      else below(imported, seen, found);
    }
    return found;
  };
  const inputOf = (name: string) =>
    path
      .relative(root, fs.realpathSync(entryOf(folder, name)))
      .split(path.sep)
      .join('/');
  return new Map(names.map((name) => [name, below(inputOf(name))]));
}

/** Packages, which Deno finds by each function's deno.json. */
const leftToDeno: Plugin = {
  name: 'left-to-deno',
  setup: (bundle) =>
    bundle.onResolve({ filter: /^[^./]/ }, ({ path: specifier, kind }) =>
      kind === 'entry-point' || path.isAbsolute(specifier) ? undefined : { path: specifier, external: true },
    ),
};

const entryOf = (folder: string, name: string) => path.join(folder, name, 'index.ts');

/**
 * Finds imports that the function's deno.json does not map, and whether its handler can be loaded.
 *
 * @param together The imports of all functions; undefined where they could not be read at once.
 */
async function importFaults(
  folder: string,
  name: string,
  together: Map<string, Set<string>> | undefined,
): Promise<{ faults: string[]; isLoadable: boolean }> {
  const imports = importsOf(folder, name);
  let specifiers: string[];
  try {
    const found = together ?? (await importsBelow(folder, [name]));
    specifiers = [...(found.get(name) ?? [])];
  } catch (error) {
    const { errors } = error as { errors: Message[] };
    const faults = errors.map(({ text, location }) => `${whereIs(location, name)}: ${text}: correct it.`);
    return { faults, isLoadable: false };
  }
  const keyOf = (specifier: string) =>
    Object.keys(imports).find((known) => specifier === known || specifier.startsWith(`${known.replace(/\/$/, '')}/`));
  const unmapped = specifiers.filter((specifier) => !keyOf(specifier) && !/^(npm|jsr|node|https?):/.test(specifier));
  if (unmapped.length > 0 && Object.keys(imports).length > 0) {
    const faults = unmapped.map((specifier) => {
      const known = specifier.split('/')[0] === modelPackage ? readManifest().modelImports : {};
      const pins = JSON.stringify(known).slice(1, -1) || 'it';
      return `supabase/functions/${name} imports ${specifier}, which its deno.json does not map: add ${pins} to imports.`;
    });
    return { faults, isLoadable: false };
  }
  return { faults: [], isLoadable: true };
}

const whereIs = (location: Message['location'], name: string) =>
  location
    ? `${path.posix.join('supabase/functions', location.file.split('supabase/functions/').at(-1) ?? '')}:${location.line}`
    : `supabase/functions/${name}`;
