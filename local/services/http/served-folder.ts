import fs from 'node:fs';
import path from 'node:path';

/** Reads a file of the folder whose name without its ending is `id`; undefined where there is none. */
export function readServed(
  folder: string,
  id: string,
  endings: string[],
): { ending: string; text: string } | undefined {
  // A client must not name another folder.
  if (!/^[\w-]+$/.test(id)) return undefined;
  for (const ending of endings) {
    const file = path.join(folder, `${id}.${ending}`);
    if (fs.existsSync(file)) return { ending, text: fs.readFileSync(file, 'utf8') };
  }
  return undefined;
}
