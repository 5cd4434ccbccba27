// The operator's page as the packages hold it: its code packed, which the server unpacks.
import fs from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

/** Writes the built page of `root` below `dist`. */
export function packPage(root: string, dist: string): void {
  const from = path.join(root, 'pages', 'dist', 'operate');
  const to = path.join(dist, 'pages', 'operate');
  fs.mkdirSync(to, { recursive: true });
  for (const name of fs.readdirSync(from)) {
    const content = fs.readFileSync(path.join(from, name));
    if (name.endsWith('.js')) fs.writeFileSync(path.join(to, `${name}.br`), compressed(content));
    else fs.writeFileSync(path.join(to, name), content);
  }
}

/** Packs a text at brotli's best quality: the package has no room for a fortieth more. */
export function compressed(text: string | Buffer): Buffer {
  return brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
}
