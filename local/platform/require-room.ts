import fs from 'node:fs';
import path from 'node:path';

const megabyte = 1e6;

/**
 * Throws one sentence that names the folder, what is free there and what is needed, in bytes, where that is less; `remedy` says
 * what to do beside making room. The folder need not be there yet.
 */
export function requireRoom(folder: string, needed: number, remedy: string): void {
  let there = path.resolve(folder);
  while (!fs.existsSync(there)) there = path.dirname(there);
  const { bavail, bsize } = fs.statfsSync(there);
  const free = bavail * bsize;
  if (free >= needed) return;
  const [has, needs] = [free, needed].map((bytes) => Math.ceil(bytes / megabyte));
  throw new Error(
    `No space is left in ${folder}: ${has} MB are free there, ${needs} MB are needed. Make room, or ${remedy}.`,
  );
}
