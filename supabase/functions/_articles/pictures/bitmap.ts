/** A picture in memory: four bytes a pixel (red, green, blue, opacity), row by row. */
export interface Bitmap {
  width: number;
  height: number;
  data: Uint8ClampedArray<ArrayBuffer>;
}

/** A picture of no colour. */
export function emptyBitmap(width: number, height: number): Bitmap {
  return { width, height, data: new Uint8ClampedArray(width * height * 4) };
}
