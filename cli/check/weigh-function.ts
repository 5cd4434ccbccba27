// How much a function has once Supabase has bundled it.
import fs from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { functionGraph, type Measured, readPackage } from './function-graph.ts';

/** A function's weight in bytes, with the heaviest part first. */
export interface Weight {
  bytes: number;
  parts: { name: string; bytes: number }[];
  /** The folders of its npm packages. */
  packages: string[];
}

/** Weighs a function: its own files together and each npm package whole, compressed with brotli at quality 5. */
export async function weighFunction(measured: Measured): Promise<Weight> {
  const { files, packages } = await functionGraph(measured);
  const parts = packages.map(weighPackage);
  parts.push({ name: 'its own files', bytes: compressedSize(files) });
  parts.sort((one, other) => other.bytes - one.bytes);
  return { bytes: parts.reduce((sum, part) => sum + part.bytes, 0), parts, packages };
}

const namedParts = 4;

/** The heaviest parts, for a sentence. */
export const heaviest = ({ parts }: Weight) =>
  parts
    .slice(0, namedParts)
    .map((part) => `${part.name} ${megabytes(part.bytes)}`)
    .join(', ');

export const megabytes = (bytes: number) => (bytes / 1e6).toFixed(2);

const knownPackages = new Map<string, Weight['parts'][number]>();

/** Names and weighs a package by its folder, once for as long as the process runs. */
function weighPackage(folder: string): Weight['parts'][number] {
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
