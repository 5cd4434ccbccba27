// Packs the predefined CMaps that pdf.js brings along into modules that a function's bundle takes: a bundle holds no other files.
// Run it after pdfjs-dist was raised: node --import tsx tests/support/examples/pack-cmaps.ts
import fs from 'node:fs';
import path from 'node:path';
import { zipSync } from 'fflate';
import { type Collection, cMapsOf, collections } from '../../../supabase/functions/_services/pdf/cmap-names.ts';

const root = path.join(import.meta.dirname, '../../..');
const source = path.join(root, 'node_modules/pdfjs-dist/cmaps');
// A zip without a time is the same whenever it is made.
const mtime = new Date(1980, 0, 1);

/** The module that holds a collection's CMaps, and Adobe's licence above them. */
export function cMapModule(collection: Collection): string {
  const files = cMapsOf(collection).map((name) => [name, fs.readFileSync(path.join(source, `${name}.bcmap`))] as const);
  const zip = zipSync(Object.fromEntries(files), { level: 9, mtime });
  const licence = fs.readFileSync(path.join(source, 'LICENSE'), 'utf8').trim();
  const comment = licence.split('\n').map((line) => `// ${line.replace(/^%%?\s?/, '')}`.trimEnd());
  return `${comment.join('\n')}\n\nexport default '${Buffer.from(zip).toString('base64')}';\n`;
}

if (process.argv[1] === import.meta.filename) {
  for (const collection of collections) {
    const file = path.join(root, `supabase/functions/_services/pdf/cmaps/${collection}.ts`);
    fs.writeFileSync(file, cMapModule(collection));
  }
}
