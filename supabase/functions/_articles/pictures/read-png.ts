import type { Size } from './scale-rows.ts';

/** How a PNG stores its pixels. */
interface Layout extends Size {
  depth: number;
  /** Of PNG's own numbers: 0 grey, 2 colours, 3 a palette, 4 grey with opacity, 6 colours with opacity. */
  kind: 0 | 2 | 3 | 4 | 6;
  palette: Uint8Array;
  opacities: Uint8Array;
}

const channels = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
const headerEnd = 33;

/**
 * Reads the rows of a PNG, four bytes a pixel, from the top, each in the same array. Throws an Error that says what is wrong with
 * it, also of one whose rows are interlaced, which cannot be read row by row.
 */
export async function* readPngRows(bytes: Uint8Array<ArrayBuffer>): AsyncGenerator<Uint8Array> {
  const { layout, parts } = readChunks(bytes);
  const bitsPerPixel = channels[layout.kind] * layout.depth;
  const stride = Math.ceil((layout.width * bitsPerPixel) / 8);
  const back = Math.max(1, bitsPerPixel >> 3);
  const pixels = new Uint8Array(layout.width * 4);
  let above = new Uint8Array(stride);
  let row = 0;
  for await (const line of linesOf(parts, stride + 1)) {
    const current = line.subarray(1);
    unfilter(line[0] ?? 0, current, above, back);
    toPixels(current, layout, pixels);
    yield pixels;
    above = current;
    row += 1;
    if (row === layout.height) return;
  }
  throw new Error('the PNG ends before its last row');
}

function readChunks(bytes: Uint8Array<ArrayBuffer>): { layout: Layout; parts: Uint8Array<ArrayBuffer>[] } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < headerEnd) throw new Error('the PNG ends in its header');
  const [depth = 0, kind = 0, , , interlaced] = bytes.subarray(24, 29);
  const layout = { width: view.getUint32(16), height: view.getUint32(20), depth, kind } as Layout;
  if (!(kind in channels) || ![1, 2, 4, 8, 16].includes(depth)) throw new Error('the PNG’s header is damaged');
  if (interlaced) throw new Error('the PNG is interlaced');
  layout.palette = new Uint8Array();
  layout.opacities = new Uint8Array();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for (let at = headerEnd; at + 8 <= bytes.length; ) {
    const length = view.getUint32(at);
    const name = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    const content = bytes.subarray(at + 8, at + 8 + length);
    if (name === 'PLTE') layout.palette = content;
    else if (name === 'tRNS' && kind === 3) layout.opacities = content;
    else if (name === 'IDAT') parts.push(content);
    else if (name === 'IEND') break;
    at += 12 + length;
  }
  return { layout, parts };
}

/** The unpacked bytes in pieces of one row each; only so much is unpacked as is asked for. */
async function* linesOf(
  parts: readonly Uint8Array<ArrayBuffer>[],
  size: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const unpacked = new Blob([...parts]).stream().pipeThrough(new DecompressionStream('deflate'));
  let line = new Uint8Array(size);
  let filled = 0;
  const reader = unpacked.getReader();
  try {
    for (let { value } = await reader.read(); value; { value } = await reader.read()) {
      for (let at = 0; at < value.length; ) {
        const taken = value.subarray(at, at + size - filled);
        line.set(taken, filled);
        filled += taken.length;
        at += taken.length;
        if (filled < size) continue;
        yield line;
        line = new Uint8Array(size);
        filled = 0;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Undoes what makes a row pack well: each byte is told by those to the left and above. */
function unfilter(filter: number, row: Uint8Array, above: Uint8Array, back: number): void {
  if (filter === 0) return;
  if (filter > 4) throw new Error('the PNG has a row that is damaged');
  for (let at = 0; at < row.length; at++) {
    const left = at < back ? 0 : (row[at - back] as number);
    const up = above[at] as number;
    const corner = at < back ? 0 : (above[at - back] as number);
    const told = filter === 1 ? left : filter === 2 ? up : filter === 3 ? (left + up) >> 1 : nearest(left, up, corner);
    row[at] = (row[at] as number) + told;
  }
}

/** Which of the three is nearest to what a slope from corner over left and up would give. */
function nearest(left: number, up: number, corner: number): number {
  const toLeft = Math.abs(up - corner);
  const toUp = Math.abs(left - corner);
  const toCorner = Math.abs(left + up - 2 * corner);
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}

function toPixels(row: Uint8Array, { width, depth, kind, palette, opacities }: Layout, pixels: Uint8Array): void {
  const count = channels[kind];
  const most = 2 ** depth - 1;
  const sample = (index: number): number => {
    if (depth === 8) return row[index] as number;
    // Of two bytes the first is all that shows.
    if (depth === 16) return row[index * 2] as number;
    const bit = index * depth;
    return ((row[bit >> 3] as number) >> (8 - depth - (bit & 7))) & most;
  };
  const grey = depth < 8 ? 255 / most : 1;
  for (let x = 0, at = 0; x < width; x++, at += 4) {
    const first = sample(x * count);
    if (kind === 3) {
      for (let channel = 0; channel < 3; channel++) pixels[at + channel] = palette[first * 3 + channel] ?? 0;
      pixels[at + 3] = opacities[first] ?? 255;
    } else if (count < 3) {
      pixels.fill(first * grey, at, at + 3);
      pixels[at + 3] = count === 2 ? sample(x * 2 + 1) : 255;
    } else {
      pixels[at] = first;
      pixels[at + 1] = sample(x * count + 1);
      pixels[at + 2] = sample(x * count + 2);
      pixels[at + 3] = count === 4 ? sample(x * 4 + 3) : 255;
    }
  }
}
