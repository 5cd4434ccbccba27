import { type Bitmap, emptyBitmap } from './bitmap.ts';

/** The size within `most` that has the same shape; a smaller one stays as it is. */
export function fitInto({ width, height }: Size, most: Size): Size {
  const scale = Math.min(1, most.width / width, most.height / height);
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
}

export interface Size {
  width: number;
  height: number;
}

/**
 * Makes a picture smaller while its rows come in, from the top: each new pixel is the average of those that it stands for, on
 * white. Keeps one row of sums, whatever the size of the picture.
 */
export class RowScaler {
  readonly #from: Size;
  readonly #to: Bitmap;
  readonly #sums: Float64Array;
  /** Which new column a column falls into. */
  readonly #columns: Uint32Array;
  readonly #counts: Uint32Array;
  #row = 0;
  #rows = 0;

  constructor(from: Size, to: Size) {
    this.#from = from;
    this.#to = emptyBitmap(to.width, to.height);
    this.#sums = new Float64Array(to.width * 3);
    this.#columns = Uint32Array.from({ length: from.width }, (_, x) => Math.floor((x * to.width) / from.width));
    this.#counts = new Uint32Array(to.width);
    for (const column of this.#columns) this.#counts[column] = (this.#counts[column] ?? 0) + 1;
  }

  /** Takes the next row: four bytes a pixel. */
  add(row: Uint8Array | Uint8ClampedArray): void {
    const sums = this.#sums;
    const columns = this.#columns;
    for (let x = 0, at = 0; x < columns.length; x++, at += 4) {
      const sum = (columns[x] as number) * 3;
      const opacity = row[at + 3] as number;
      const white = 255 - opacity;
      sums[sum] = (sums[sum] as number) + ((row[at] as number) * opacity) / 255 + white;
      sums[sum + 1] = (sums[sum + 1] as number) + ((row[at + 1] as number) * opacity) / 255 + white;
      sums[sum + 2] = (sums[sum + 2] as number) + ((row[at + 2] as number) * opacity) / 255 + white;
    }
    this.#row += 1;
    this.#rows += 1;
    const { height } = this.#to;
    const next = Math.floor((this.#row * height) / this.#from.height);
    const current = Math.floor(((this.#row - 1) * height) / this.#from.height);
    if (next > current) this.#finishRow(current);
  }

  /** The picture. Rows that never came are white. */
  result(): Bitmap {
    const { data } = this.#to;
    for (let at = 3; at < data.length; at += 4) {
      if (data[at] !== 255) data.fill(255, at - 3, at + 1);
    }
    return this.#to;
  }

  #finishRow(row: number): void {
    const { data, width } = this.#to;
    for (let x = 0, at = row * width * 4; x < width; x++, at += 4) {
      const count = (this.#counts[x] as number) * this.#rows;
      for (let channel = 0; channel < 3; channel++)
        data[at + channel] = (this.#sums[x * 3 + channel] as number) / count;
      data[at + 3] = 255;
    }
    this.#sums.fill(0);
    this.#rows = 0;
  }
}
