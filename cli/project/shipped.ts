// Reads what the package ships: the runtime, the engine's migrations, and the versions that functions pin.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { type Change, withoutReturns } from './change-set.ts';

/** The content of `supabase/functions/_millrace/manifest.json`, which describes the runtime beside it. */
export interface Manifest {
  release: string;
  level: number;
  contract: number;
  /** The imports of a function's deno.json, by name: the packages of the runtime, in the versions tried with it. */
  imports: Record<string, string>;
  /** The further imports, in the same form, of stages that ask a language model. */
  modelImports: Record<string, string>;
  /** The SHA-256 of each file, by its path in the runtime's folder. */
  files: Record<string, string>;
  /** The SHA-256 of each saved query, by its path in the project. */
  snippets: Record<string, string>;
}

/** The folder of the package: this file lies two below it, and bundled, in `dist/`, one. */
export const packageFolder = path.join(
  import.meta.dirname,
  path.basename(import.meta.dirname) === 'dist' ? '..' : '../..',
);

export const runtimeFolder = 'supabase/functions/_millrace';
/** In the order in which a person meets them. */
export const runtimePackages = ['zod', '@supabase/postgrest-js', 'standardwebhooks', 'ipaddr.js'];
/** The package that `_millrace/model` and `_millrace/agents` import; other functions need not have it. */
export const modelPackage = 'openai';

/** Returns the SHA-256 of a text, however its lines end. */
export const digestOf = (text: string) => createHash('sha256').update(withoutReturns(text)).digest('hex');

/** Returns the runtime's own files but for the manifest, by their path in `folder`. */
export function runtimeFiles(folder: string): Record<string, string> {
  const names = fs.readdirSync(folder, { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    names
      .filter((entry) => entry.isFile() && /\.(?:ts|sql)$|^README\.md$/.test(entry.name))
      .map((entry) => path.join(entry.parentPath, entry.name))
      .map((file) => [path.relative(folder, file).split(path.sep).join('/'), fs.readFileSync(file, 'utf8')] as const)
      .sort(([a], [b]) => a.localeCompare(b)),
  );
}

/** Where the package has the runtime packed, which leaves room for the pages. */
export const packedRuntime = 'dist/runtime.json.br';

/** Returns the files of the runtime that the package ships, by their path in its folder. */
export function shippedRuntime(): Record<string, string> {
  return JSON.parse(brotliDecompressSync(fs.readFileSync(path.join(packageFolder, packedRuntime))).toString());
}

/**
 * Reads the manifest of a runtime's folder, or by default of this package. Throws an error with the remedy where the
 * file cannot be read.
 */
export function readManifest(folder?: string): Manifest {
  if (folder !== undefined) return readFrom(folder);
  return {
    ...readFrom(path.join(packageFolder, 'dist')),
    // The package leaves these digests out: they would take 7 kB.
    get files() {
      return Object.fromEntries(Object.entries(shippedRuntime()).map(([file, text]) => [file, digestOf(text)]));
    },
  };
}

function readFrom(folder: string): Manifest {
  const file = path.join(folder, 'manifest.json');
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`${file} cannot be read (${(error as Error).message}): delete it and run \`npx millrace init\`.`);
  }
}

/** Returns a file of the engine that the package ships packed; null where it has none of that name. */
function engineFile(name: string): string | null {
  const file = path.join(packageFolder, 'dist', 'engine', `${name}.sql.br`);
  return fs.existsSync(file) ? brotliDecompressSync(fs.readFileSync(file)).toString() : null;
}

function requireEngineFile(name: string): string {
  const text = engineFile(name);
  if (text === null) throw new Error(`The package has no ${name} of the engine: it is not whole, install it again.`);
  return text;
}

/** Returns the migration that installs the engine at the level of this release. */
export const engineInstall = () => requireEngineFile('install');

/** Returns the migration that leads from the level before to this one. */
export const engineStep = (level: number) => requireEngineFile(`step-${level}`);

export const engineUninstall = () => requireEngineFile('uninstall');

/** Returns the functions that adopt rows, which a project needs once. */
export const adoptionFunctions = () => requireEngineFile('adopt');

/** Returns the runtime of this release with its manifest, as files of a project. */
export function runtimeChanges(manifest: Manifest): Change[] {
  return [
    ...Object.entries(shippedRuntime()).map(([file, text]) => ({ file: `${runtimeFolder}/${file}`, text })),
    { file: `${runtimeFolder}/manifest.json`, text: `${JSON.stringify(manifest, null, 2)}\n` },
  ];
}

/** Returns a function's deno.json, which maps what the runtime imports, and for a stage that asks a model what that takes. */
export const denoJson = ({ imports, modelImports }: Manifest, asksModel = false) =>
  `${JSON.stringify({ imports: { ...imports, ...(asksModel && modelImports) } }, null, 2)}\n`;

/** Returns the function `millrace` as `init` writes it. */
export const millraceFunction = (manifest: Manifest): { file: string; text: string }[] => [
  {
    file: 'supabase/functions/millrace/index.ts',
    text: `import { serveMillrace } from '../_millrace/serve-millrace.ts';\n\nserveMillrace();\n`,
  },
  { file: 'supabase/functions/millrace/deno.json', text: denoJson(manifest) },
];
