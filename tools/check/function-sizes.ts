// Measures how large each function is once Supabase has bundled it, and compares that with its budget.
import fs from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { deployedFunctions, readFunctionConfigs } from '../../local/platform/functions/function-config.ts';
import { functionGraph, readPackage } from './function-graph.ts';

/** In megabytes. The platform refuses what is over 5 where it bundles itself, which is wherever there is no Docker. */
const budgets = { plain: 1.2, model: 2.2, any: 4.5 };
/** Functions of the runtime itself, which need no stage's libraries. */
const runtimeFunctions = ['job-complete', 'millrace'];
const namedParts = 4;

/** One function's size when it is bundled, in bytes, with the heaviest part first. */
export interface FunctionSize {
  name: string;
  kind: keyof typeof budgets;
  bytes: number;
  parts: { name: string; bytes: number }[];
}

/** Looks for functions in `folder` that are over their budget. Resolves to a sentence for each, empty when there is none. */
export async function checkFunctionSizes(folder: string): Promise<string> {
  const tooLarge = (await functionSizes(folder)).filter(({ bytes, kind }) => bytes > budgets[kind] * 1e6);
  return tooLarge
    .map(({ name, kind, bytes, parts }) => {
      const heaviest = parts.slice(0, namedParts).map((part) => `${part.name} ${megabytes(part.bytes)}`);
      return `${name}: ${megabytes(bytes)} MB, at most ${budgets[kind]}. Its heaviest parts: ${heaviest.join(', ')}`;
    })
    .join('\n');
}

/**
 * Measures every function in `folder`: its own files together and each npm package whole, compressed with brotli at quality 5.
 * A plain one has no packages but the runtime's, a model's those of openai beside them.
 */
export async function functionSizes(folder: string): Promise<FunctionSize[]> {
  const configOf = readFunctionConfigs(folder);
  const runtime = await runtimePackages(folder);
  return Promise.all(
    deployedFunctions(folder).map(async (name) => {
      const { files, packages } = await functionGraph(configOf(name));
      const parts = packages.map(sizeOf);
      parts.push({ name: 'its own files', bytes: compressedSize(files) });
      parts.sort((one, other) => other.bytes - one.bytes);
      const kind = runtimeFunctions.includes(name) ? 'plain' : kindOf(packages, runtime);
      return { name, kind, bytes: parts.reduce((sum, part) => sum + part.bytes, 0), parts };
    }),
  );
}

/** The packages that a stage may load with no library of its own: to be served, and to reach the project's rows and Storage. */
async function runtimePackages(folder: string): Promise<string[]> {
  const entries = ['_millrace/worker/serve-stage.ts', '_services/project-client.ts'].map((file) =>
    path.join(folder, file),
  );
  const importMap = path.join(folder, 'deno.json');
  const graphs = await Promise.all(entries.map((entry) => functionGraph({ entry, importMap })));
  return graphs.flatMap(({ packages }) => packages);
}

function kindOf(packages: string[], runtime: string[]): FunctionSize['kind'] {
  const more = packages.filter((folder) => !runtime.includes(folder)).map((folder) => path.basename(folder));
  if (more.length === 0) return 'plain';
  return more.length === 1 && more[0] === 'openai' ? 'model' : 'any';
}

const knownPackages = new Map<string, FunctionSize['parts'][number]>();

/** Names and weighs a package by its folder, once for as long as the process runs. */
function sizeOf(folder: string): FunctionSize['parts'][number] {
  const known = knownPackages.get(folder);
  if (known) return known;
  const { name, version } = readPackage(folder);
  const part = { name: `${name}@${version}`, bytes: compressedSize(filesIn(folder)) };
  knownPackages.set(folder, part);
  return part;
}

function filesIn(folder: string): string[] {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : filesIn(file);
    return [file];
  });
}

function compressedSize(files: string[]): number {
  const whole = Buffer.concat(files.map((file) => fs.readFileSync(file)));
  return brotliCompressSync(whole, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }).length;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(2);
}
