import { Buffer } from 'node:buffer';
import { unzipSync } from 'fflate';
import { type Collection, collectionOf, plainCMap } from './cmap-names.ts';

// Loaded when a file first asks for one: most files need none.
const modules: Record<Collection, () => Promise<{ default: string }>> = {
  gb1: () => import('./cmaps/gb1.ts'),
  cns1: () => import('./cmaps/cns1.ts'),
  japan1: () => import('./cmaps/japan1.ts'),
  korea1: () => import('./cmaps/korea1.ts'),
};

/** Gives pdf.js the CMaps that a PDF names without embedding them. */
export class CMapReader {
  async fetch({ name }: { name: string }): Promise<{ cMapData: Uint8Array; isCompressed: boolean }> {
    const plain = plainCMap(name);
    if (plain) return { cMapData: new TextEncoder().encode(plain), isCompressed: false };
    const collection = collectionOf(name);
    if (!collection) throw new Error(`The CMap ${name} is none that PDF predefines.`);
    const packed = Buffer.from((await modules[collection]()).default, 'base64');
    const cMapData = unzipSync(packed, { filter: (file) => file.name === name })[name];
    if (!cMapData) throw new Error(`The CMap ${name} is missing: run tests/support/examples/pack-cmaps.ts.`);
    return { cMapData, isCompressed: true };
  }
}
