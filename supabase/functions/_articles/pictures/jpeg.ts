import { readFile } from 'node:fs/promises';
import decode, { init as initDecoder } from '@jsquash/jpeg/decode.js';
import encode, { init as initEncoder } from '@jsquash/jpeg/encode.js';
import type { Bitmap } from './bitmap.ts';

const quality = 80;

// The codec makes one of these, which not every runtime has.
class PlainImageData {
  constructor(
    readonly data: Uint8ClampedArray,
    readonly width: number,
    readonly height: number,
  ) {}
}

let decoder: Promise<unknown> | undefined;
let encoder: Promise<unknown> | undefined;

/** Reads a JPEG, turned as its camera says. Throws where it is damaged. Takes nine bytes of memory a pixel for a moment. */
export async function decodeJpeg(bytes: Uint8Array<ArrayBuffer>): Promise<Bitmap> {
  (globalThis as { ImageData?: unknown }).ImageData ??= PlainImageData;
  decoder ??= codec('dec/mozjpeg_dec.wasm').then((module) => initDecoder(module));
  await decoder;
  const { buffer, byteOffset, byteLength } = bytes;
  const whole = byteLength === buffer.byteLength ? buffer : buffer.slice(byteOffset, byteOffset + byteLength);
  const { data, width, height } = await decode(whole, { preserveOrientation: true });
  return { data: data as Uint8ClampedArray<ArrayBuffer>, width, height };
}

/** Writes a picture as JPEG. */
export async function encodeJpeg({ data, width, height }: Bitmap): Promise<Uint8Array<ArrayBuffer>> {
  encoder ??= codec('enc/mozjpeg_enc.wasm').then((module) => initEncoder(module));
  await encoder;
  const picture = { data, width, height, colorSpace: 'srgb' } as ImageData;
  return new Uint8Array(await encode(picture, { quality }));
}

/** The codec's code, read as a file: not every runtime can fetch one, which the package would do by itself. */
async function codec(file: string): Promise<WebAssembly.Module> {
  const place = new URL(`codec/${file}`, import.meta.resolve('@jsquash/jpeg/decode.js'));
  return WebAssembly.compile(await readFile(place));
}
