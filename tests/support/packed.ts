// The tarballs of `npm pack`: made once for a whole Vitest run, since packing empties dist/, which another file may be packing.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { inject } from 'vitest';

const root = path.join(import.meta.dirname, '..', '..');

/** Paths of what users install. */
interface Packed {
  millrace: string;
  /** The local stack, `@millrace/dev`. */
  dev: string;
}

/** Packs both, or waits for the file of tests that does. Throws what npm said where it failed. */
export async function packedTarballs(): Promise<Packed> {
  const folder = path.join(inject('runFolder'), 'packed');
  const told = path.join(folder, 'told.json');
  if (startsPacking(folder)) {
    const packed = await pack(folder).catch((error: Error) => ({ error: error.message }));
    fs.writeFileSync(`${told}.part`, JSON.stringify(packed));
    fs.renameSync(`${told}.part`, told);
  }
  while (!fs.existsSync(told)) await sleep(50);
  const packed = JSON.parse(fs.readFileSync(told, 'utf8'));
  if (packed.error) throw new Error(packed.error);
  return packed;
}

/** Whether this is the first to ask. */
function startsPacking(folder: string): boolean {
  try {
    fs.mkdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

async function pack(folder: string): Promise<Packed> {
  const one = async (...args: string[]) => {
    const given = ['pack', '--json', '--pack-destination', folder, ...args];
    const { stdout } = await promisify(execFile)('npm', given, { cwd: root });
    return path.join(folder, JSON.parse(stdout.slice(stdout.indexOf('[\n')))[0].filename);
  };
  return { millrace: await one(), dev: await one('-w', '@millrace/dev') };
}
