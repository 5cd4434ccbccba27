import type { Bitmap } from './bitmap.ts';
import { decodeJpeg } from './jpeg.ts';
import { type PictureHeader, readPictureHeader } from './picture-header.ts';
import { readPngRows } from './read-png.ts';
import { fitInto, RowScaler } from './scale-rows.ts';

/** A JPEG of this many takes 0.5 s of CPU and 100 MB; a function has 2 s and 256 MB. */
export const mostPixels = 6_000_000;
/** A picture with a shorter side is a tracking pixel or a logo. In pixels. */
const leastSide = 80;
/** In which the mark of a JPEG's end stands, before what some programs add. */
const endBytes = 4096;
const largest = { width: 640, height: 960 };

/** A picture that cannot be used, and why: for the stage's record, since a card takes its place. */
export class UnusablePicture extends Error {}

/** Says by a picture's first bytes whether it can be made smaller here. Throws an UnusablePicture. */
export function checkPicture(head: Uint8Array): PictureHeader {
  const header = readPictureHeader(head);
  if (!header) throw new UnusablePicture('the image is neither JPEG nor PNG, whatever its name says');
  const { width, height } = header;
  if (width * height > mostPixels)
    throw new UnusablePicture(`the image has ${width} × ${height} pixels, too many to be read`);
  if (Math.min(width, height) < leastSide)
    throw new UnusablePicture(`the image has ${width} × ${height} pixels, too few`);
  return header;
}

/** Makes a picture at most 640 pixels wide. Throws an UnusablePicture where it is none or damaged. */
export async function shrinkPicture(bytes: Uint8Array<ArrayBuffer>): Promise<Bitmap> {
  const { type } = checkPicture(bytes);
  try {
    return await (type === 'png' ? shrinkPng(bytes) : shrinkJpeg(bytes));
  } catch (error) {
    throw new UnusablePicture(`the image cannot be read: ${(error as Error).message}`);
  }
}

async function shrinkJpeg(bytes: Uint8Array<ArrayBuffer>): Promise<Bitmap> {
  // The codec would paint what is missing grey.
  const end = bytes.subarray(-endBytes);
  if (!end.some((byte, at) => byte === 0xff && end[at + 1] === 0xd9)) throw new Error('the JPEG is cut off');
  const picture = await decodeJpeg(bytes);
  const scaler = new RowScaler(picture, fitInto(picture, largest));
  const stride = picture.width * 4;
  for (let at = 0; at < picture.data.length; at += stride) scaler.add(picture.data.subarray(at, at + stride));
  return scaler.result();
}

async function shrinkPng(bytes: Uint8Array<ArrayBuffer>): Promise<Bitmap> {
  const size = checkPicture(bytes);
  const scaler = new RowScaler(size, fitInto(size, largest));
  for await (const row of readPngRows(bytes)) scaler.add(row);
  return scaler.result();
}
