// How much a function has once Supabase has bundled it.
import fs from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { type FunctionGraph, functionGraph, type Measured, readPackage } from './function-graph.ts';

/** A function's weight in bytes, with the heaviest part first. */
export interface Weight {
  bytes: number;
  parts: { name: string; bytes: number }[];
  /** The folders of its npm packages. */
  packages: string[];
}

/** Qualities of brotli: Supabase's own, and one that takes a sixth of the time and compresses less. */
const qualities = { exact: 5, quick: 1 };

/**
 * Weighs a function: its own files together and each npm package whole, compressed with brotli at quality 5.
 *
 * @param enough Bytes. A function that has no more at quality 1 gets that weight, which is quicker. 0: always 5.
 */
export async function weighFunction(measured: Measured, enough = 0): Promise<Weight> {
  const graph = await functionGraph(measured);
  const quick = enough > 0 ? weighGraph(graph, qualities.quick) : undefined;
  return quick && quick.bytes <= enough ? quick : weighGraph(graph, qualities.exact);
}

function weighGraph({ files, packages }: FunctionGraph, quality: number): Weight {
  const parts = packages.map((folder) => weighPackage(folder, quality));
  parts.push({ name: 'its own files', bytes: compressedSize(files, quality) });
  parts.sort((one, other) => other.bytes - one.bytes);
  return { bytes: parts.reduce((sum, part) => sum + part.bytes, 0), parts, packages };
}

const namedParts = 4;

/** Returns the heaviest parts, for a sentence. */
export const heaviest = ({ parts }: Weight) =>
  parts
    .slice(0, namedParts)
    .map((part) => `${part.name} ${megabytes(part.bytes)}`)
    .join(', ');

export const megabytes = (bytes: number) => (bytes / 1e6).toFixed(2);

const knownPackages = new Map<string, Weight['parts'][number]>();

/** Names and weighs a package by its folder, once for as long as the process runs. */
function weighPackage(folder: string, quality: number): Weight['parts'][number] {
  const key = `${quality} ${folder}`;
  const known = knownPackages.get(key);
  if (known) return known;
  const { name, version } = readPackage(folder);
  const part = { name: `${name}@${version}`, bytes: compressedSize(filesIn(folder), quality) };
  knownPackages.set(key, part);
  return part;
}

function filesIn(folder: string): string[] {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : filesIn(file);
    return [file];
  });
}

function compressedSize(files: string[], quality: number): number {
  const whole = Buffer.concat(files.map((file) => fs.readFileSync(file)));
  return brotliCompressSync(whole, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } }).length;
}
