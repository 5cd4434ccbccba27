import { createRequire } from 'node:module';
import path from 'node:path';
import { createCanvas, loadImage } from '@napi-rs/canvas';
import { imageSize } from 'image-size';
import * as pdfjs from 'pdfjs-dist/legacy/build/pdf.mjs';
import { sniffDocument } from '../../../supabase/functions/_services/pdf/pdf.ts';
import { PageFault } from './page-text.ts';

/** A page as a picture in shades of grey. */
export interface GreyPage {
  /** A binary PGM file, which costs nothing to pack and unpack. */
  pgm: Buffer;
  /** The width and height of the page, in points for a PDF and in pixels for an image. */
  width: number;
  height: number;
  /** Pixels of the picture for each unit of the page. */
  scale: number;
}

/** Pixels per inch. Below 150 small headings of a skewed scan get lost; above 200 nothing is gained. */
export const resolution = 200;

const pointsPerInch = 72;
const mostPixels = 8_000_000;
const mostImagePixels = 60_000_000;
const pdfjsFolder = path.dirname(createRequire(import.meta.url).resolve('pdfjs-dist/package.json'));

/** Draws a page of a PDF, or the one page that a PNG or JPEG image is. Throws a PageFault. */
export async function renderPage(bytes: Uint8Array, page: number): Promise<GreyPage> {
  const kind = await sniffDocument(bytes);
  if (kind === 'pdf') return renderPdf(bytes, page);
  const type = kind === 'image' ? measure(bytes) : null;
  if (!type) throw new PageFault('unsupported_type', 'the document is neither a PDF nor a PNG or JPEG image');
  if (page !== 1) throw new PageFault('no_such_page', `page ${page} is asked for, but an image has one page`);
  return renderImage(bytes, type);
}

async function renderPdf(bytes: Uint8Array, page: number): Promise<GreyPage> {
  try {
    return await drawPdf(bytes, page, true);
  } catch (error) {
    const { name, message } = error as Error;
    if (error instanceof PageFault) throw error;
    if (name === 'PasswordException') throw new PageFault('encrypted_document', 'the document asks for a password');
    if (/maximum allowed size/i.test(message)) throw tooLarge();
  }
  try {
    // A document with a small fault can mostly be drawn all the same.
    return await drawPdf(bytes, page, false);
  } catch (error) {
    if (error instanceof PageFault) throw error;
    throw new PageFault('damaged_document', `the document cannot be read: ${(error as Error).message}`);
  }
}

async function drawPdf(bytes: Uint8Array, number: number, stopAtErrors: boolean): Promise<GreyPage> {
  const loading = pdfjs.getDocument({
    // A copy, because pdf.js keeps what it is given, and takes no Buffer.
    data: new Uint8Array(bytes),
    stopAtErrors,
    maxImageSize: mostImagePixels,
    standardFontDataUrl: `${pdfjsFolder}/standard_fonts/`,
    cMapUrl: `${pdfjsFolder}/cmaps/`,
    wasmUrl: `${pdfjsFolder}/wasm/`,
    verbosity: 0,
  });
  try {
    const document = await loading.promise;
    if (number > document.numPages) {
      const message = `page ${number} is asked for, but the document has ${document.numPages}`;
      throw new PageFault('no_such_page', message);
    }
    const page = await document.getPage(number);
    const { width, height } = page.getViewport({ scale: 1 });
    const scale = Math.min(resolution / pointsPerInch, Math.sqrt(mostPixels / (width * height)));
    const { canvas, context } = whitePaper(width * scale, height * scale);
    const viewport = page.getViewport({ scale });
    await page.render({ canvas: canvas as never, canvasContext: context as never, viewport }).promise;
    return { pgm: toPgm(context, canvas.width, canvas.height), width, height, scale };
  } finally {
    await loading.destroy();
  }
}

/** Returns the size of a PNG or JPEG image by its header alone; null for another kind. */
function measure(bytes: Uint8Array): { width: number; height: number } | null {
  try {
    const { type, width, height } = imageSize(bytes);
    return type === 'png' || type === 'jpg' ? { width, height } : null;
  } catch {
    throw new PageFault('damaged_document', 'the image cannot be read');
  }
}

async function renderImage(bytes: Uint8Array, size: { width: number; height: number }): Promise<GreyPage> {
  const { width, height } = size;
  if (width * height > mostImagePixels) throw tooLarge();
  const image = await loadImage(bytes).catch(() => {
    throw new PageFault('damaged_document', 'the image cannot be read');
  });
  const scale = Math.min(1, Math.sqrt(mostPixels / (width * height)));
  const { canvas, context } = whitePaper(width * scale, height * scale);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return { pgm: toPgm(context, canvas.width, canvas.height), width, height, scale };
}

function tooLarge(): PageFault {
  return new PageFault('too_large', `an image has more than ${mostImagePixels} pixels; scan at a lower resolution`);
}

function whitePaper(width: number, height: number) {
  const canvas = createCanvas(Math.max(1, Math.round(width)), Math.max(1, Math.round(height)));
  const context = canvas.getContext('2d');
  context.fillStyle = 'white';
  context.fillRect(0, 0, canvas.width, canvas.height);
  return { canvas, context };
}

function toPgm(context: ReturnType<typeof whitePaper>['context'], width: number, height: number): Buffer {
  const { data } = context.getImageData(0, 0, width, height);
  const header = Buffer.from(`P5\n${width} ${height}\n255\n`);
  const pgm = Buffer.alloc(header.length + width * height);
  header.copy(pgm);
  for (let from = 0, to = header.length; from < data.length; from += 4, to++) {
    const [red = 0, green = 0, blue = 0] = [data[from], data[from + 1], data[from + 2]];
    // The eye's weights of the colours, in 256ths.
    pgm[to] = (red * 77 + green * 151 + blue * 28) >> 8;
  }
  return pgm;
}
