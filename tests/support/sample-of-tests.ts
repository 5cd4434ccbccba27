import { createHash } from 'node:crypto';

export interface TestFile {
  file: string;
  bytes: number;
}

/**
 * The files that one landing runs on another Postgres: about a `parts`-th of them all by size, drawn by `seed`, so that landings
 * cover all in time.
 */
export function sampleOf(files: TestFile[], seed: string, parts: number): string[] {
  const draw = ({ file }: TestFile) => createHash('sha256').update(`${seed} ${file}`).digest('hex');
  const drawn = files.map((one) => ({ ...one, at: draw(one) })).sort((a, b) => (a.at < b.at ? -1 : 1));
  let left = files.reduce((sum, { bytes }) => sum + bytes, 0) / parts;
  return drawn
    .filter(({ bytes }) => {
      if (bytes > left) return false;
      left -= bytes;
      return true;
    })
    .map(({ file }) => file)
    .sort();
}
