// Whether the files of `millrace sync --types` have the types of the definitions as they are now.
import fs from 'node:fs';
import path from 'node:path';
import { realChanges } from '../project/change-set.ts';
import type { Project } from '../project/find-project.ts';
import { typesHead } from '../sync/pipeline-types.ts';
import { readTypes } from '../sync/sync-pipelines.ts';

/** A sentence, with the remedy, for each file of types that is stale; a file is known by its first line. */
export async function typesFaults({ root }: Project): Promise<string[]> {
  const files = typesFiles(root, '');
  if (files.length === 0) return [];
  const text = await readTypes(path.join(root, 'supabase', 'functions'));
  return realChanges(
    root,
    files.map((file) => ({ file, text })),
  ).map(({ file }) => staleTypes(file));
}

export const staleTypes = (file: string) =>
  `${file} has other types than the definitions: run \`npx millrace sync --types=${file}\`.`;

/** The files below a folder that `sync --types` wrote; supabase/ and packages hold none. */
function typesFiles(root: string, folder: string): string[] {
  return fs.readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const file = folder ? `${folder}/${entry.name}` : entry.name;
    if (entry.isDirectory()) return /^\.|^node_modules$|^supabase$/.test(entry.name) ? [] : typesFiles(root, file);
    return entry.isFile() && file.endsWith('.ts') && beginsWithHead(path.join(root, file)) ? [file] : [];
  });
}

function beginsWithHead(file: string): boolean {
  const descriptor = fs.openSync(file, 'r');
  try {
    const read = Buffer.alloc(typesHead.length);
    return fs.readSync(descriptor, read) === read.length && read.toString() === typesHead;
  } finally {
    fs.closeSync(descriptor);
  }
}
