import { Buffer } from 'node:buffer';
import { fileTypeFromBuffer } from 'file-type';
import { getDocumentProxy, getResolvedPDFJS } from 'unpdf';
import { messageOf, PermanentError, storableText } from '../../_millrace/mod.ts';
import { utf16Of } from '../text/decode-text.ts';
import { textQuality } from '../text/text-quality.ts';
import { withActualText } from './actual-text.ts';
import { type ContentStreams, contentStreams } from './content-streams.ts';
import { fontFrom, nameGlyphs } from './pdf-fonts.ts';
import { coversPage, type DrawingSteps, isDrawnOn } from './pdf-images.ts';
import type { PdfFont, PdfGlyph } from './pdf-letters.ts';
import { joinLines, type PdfLine, readLines } from './pdf-lines.ts';
import { type PdfOutlineEntry, readOutline } from './pdf-outline.ts';
import { readPieces } from './pdf-pieces.ts';
import { CMapReader } from './read-cmaps.ts';

/** The lines of a page's text layer. Lengths are in points (1/72 inch). */
export interface PdfLines {
  lines: PdfLine[];
  /** How many letters the page has, and how many of them nothing in the file tells: each is U+FFFD in the text. */
  letters: number;
  unread: number;
  /** How many letters may be others, or stand in another order: the file gives them a text (ActualText) that cannot be read. */
  doubtful: number;
}

/** One page with its text layer. */
export interface PdfPage extends PdfLines {
  /** The lines, parted by \n, with an empty line between paragraphs that stand apart; empty when there is no text layer. */
  text: string;
  width: number;
  height: number;
  /** How far the text is words as people write them, from 0 to 1. Falls to half where over one letter in 1,000 is unread or doubtful. */
  quality: number;
  /** Whether images cover nearly the whole page, as on a scanned one, which may have a text layer all the same. */
  coversPageByImage: boolean;
}

/** An open PDF. */
export interface Pdf {
  pageCount: number;
  /** Reads the text layer of page `number`, from 1. Throws a PermanentError: no_such_page or damaged_document. */
  pageText(number: number): Promise<PdfPage>;
  /** Only the lines of page `number`, from 1. Throws as pageText does. */
  pageLines(number: number): Promise<PdfLines>;
  /** Whether page `number`, from 1, has neither text nor pictures nor lines. Text that cannot be read is text. Throws as pageText does. */
  isBlank(number: number): Promise<boolean>;
  /** The outline that the file brings along; empty where it has none. */
  outline(): Promise<PdfOutlineEntry[]>;
  /** Frees the memory. */
  close(): Promise<void>;
}

export type DocumentKind = 'pdf' | 'text' | 'image' | 'unknown';

// Readers accept a PDF whose header comes after some other bytes, such as a mail's.
const headerBytes = 1024;
const tailBytes = 2048;
const textProbeBytes = 64 * 1024;
const escapeByte = 27;
// Of a page's letters: more make it a page that is only partly read.
const mostUnread = 0.001;
const unreadQuality = 0.5;
// Types whose files are texts themselves.
const writtenTypes = /^text\/|xml$|\/(?:rtf|postscript|eps|pgp-encrypted)$/;

/**
 * Tells what a file is by its bytes, whatever its name says.
 *
 * @example
 * ```ts
 * if ((await sniffDocument(bytes)) !== 'pdf') throw new PermanentError('unsupported_type', 'Upload a PDF.');
 * ```
 */
export async function sniffDocument(bytes: Uint8Array): Promise<DocumentKind> {
  const type = await sniffMediaType(bytes);
  if (type === 'application/pdf') return 'pdf';
  if (type === 'text/plain') return 'text';
  return type?.startsWith('image/') ? 'image' : 'unknown';
}

/**
 * The same as a media type: text/plain for any text that says of itself nothing more, null for what nobody knows.
 *
 * @example
 * ```ts
 * const type = (await sniffMediaType(bytes)) ?? 'application/octet-stream';
 * ```
 */
export async function sniffMediaType(bytes: Uint8Array): Promise<string | null> {
  const isWritten = isText(bytes.subarray(0, textProbeBytes));
  // A text may speak of PDF.
  const pdfHeader = isWritten ? /^%PDF-\d/m : /%PDF-/;
  if (pdfHeader.test(latin1(bytes.subarray(0, headerBytes)))) return 'application/pdf';
  const known = await fileTypeFromBuffer(bytes);
  // Words may be the marks of other types: BMW begins as a bitmap does, "The wide" as a film, and UTF-16 as a recording.
  if (known && (!isWritten || writtenTypes.test(known.mime))) return known.mime;
  return isWritten ? 'text/plain' : null;
}

/**
 * Opens a PDF. The bytes are handed over and cannot be read afterwards. Throws a PermanentError with the code
 * empty_document, unsupported_type (no PDF at all), encrypted_document or damaged_document (truncated ones included).
 *
 * @example
 * ```ts
 * const pdf = await openPdf(bytes);
 * try {
 *   const { text } = await pdf.pageText(1);
 *   console.log(text);
 * } finally {
 *   await pdf.close();
 * }
 * ```
 */
export async function openPdf(bytes: Uint8Array): Promise<Pdf> {
  if (bytes.length === 0) throw new PermanentError('empty_document', 'The file is empty: upload it again.');
  const kind = await sniffDocument(bytes);
  if (kind !== 'pdf') {
    throw new PermanentError('unsupported_type', `The file is no PDF, but ${described[kind]}: upload a PDF.`);
  }
  // A reader would repair a file that was cut off by leaving out what is missing, which nobody would notice.
  const end = endOf(bytes);
  if (end === null) {
    throw new PermanentError('damaged_document', 'The PDF ends before its end mark %%EOF: upload the whole file.');
  }
  const document = await open(end === bytes.length ? bytes : bytes.slice(0, end));
  let found: Promise<ContentStreams> | undefined;
  const streams = () => (found ??= document.getData().then(contentStreams));
  const file = { pageCount: document.numPages, streams };
  return {
    pageCount: document.numPages,
    pageText: (number) => withPage(document, number, (page) => readPage(page, file)),
    pageLines: (number) => withPage(document, number, (page) => readPageLines(page, file)),
    isBlank: (number) => withPage(document, number, (page) => isPageBlank(page, file)),
    outline: () => readOutline(document).catch(() => []),
    close: () => document.destroy(),
  };
}

/**
 * Where the PDF ends: behind its last %%EOF, whatever was appended, such as padding, a mail's footer, or a second mark. Null for a
 * file that was cut off: it has no mark, or an update behind the last one that has none of its own.
 */
function endOf(bytes: Uint8Array): number | null {
  const mark = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).lastIndexOf('%%EOF');
  if (mark < 0) return null;
  const end = mark + '%%EOF'.length;
  const tail = latin1(bytes.subarray(end, end + tailBytes));
  return /\d+\s+\d+\s+obj\b|\bxref\b/.test(tail) ? null : end;
}

type Document = Awaited<ReturnType<typeof getDocumentProxy>>;
type Page = Awaited<ReturnType<Document['getPage']>>;

interface OpenedFile {
  pageCount: number;
  streams: () => Promise<ContentStreams>;
}

const described: Record<Exclude<DocumentKind, 'pdf'>, string> = {
  image: 'an image',
  text: 'text',
  unknown: 'something unknown',
};

async function open(bytes: Uint8Array): Promise<Document> {
  try {
    // Images are left out undecoded: decoding one takes a hundred times the work of reading the page's text.
    return await getDocumentProxy(bytes, {
      maxImageSize: 0,
      disableFontFace: true,
      verbosity: 0,
      CMapReaderFactory: CMapReader,
      fontExtraProperties: true,
    });
  } catch (error) {
    if (error instanceof Error && error.name === 'PasswordException') {
      throw new PermanentError('encrypted_document', 'The PDF asks for a password: upload it without one.');
    }
    throw damaged(error);
  }
}

async function withPage<T>(document: Document, number: number, read: (page: Page) => Promise<T>): Promise<T> {
  if (!Number.isInteger(number) || number < 1 || number > document.numPages) {
    throw new PermanentError(
      'no_such_page',
      `Page ${number} is asked for, but the PDF has ${document.numPages} pages.`,
    );
  }
  try {
    const page = await document.getPage(number);
    const result = await read(page);
    page.cleanup();
    return result;
  } catch (error) {
    throw damaged(error);
  }
}

async function readPage(page: Page, file: OpenedFile): Promise<PdfPage> {
  const { width, height } = page.getViewport({ scale: 1 });
  const { steps, ops, ...read } = await paintedPage(page, file);
  const text = joinLines(read.lines);
  const isDoubtful = read.unread + read.doubtful > read.letters * mostUnread;
  return {
    ...read,
    text,
    width,
    height,
    quality: textQuality(text) * (isDoubtful ? unreadQuality : 1),
    coversPageByImage: coversPage(steps, page.view, ops),
  };
}

async function isPageBlank(page: Page, file: OpenedFile): Promise<boolean> {
  const { steps, ops, lines, unread } = await paintedPage(page, file);
  return lines.length === 0 && unread === 0 && !isDrawnOn(steps, page.view, ops);
}

async function readPageLines(page: Page, file: OpenedFile): Promise<PdfLines> {
  const { lines, letters, unread, doubtful } = await paintedPage(page, file);
  return { lines, letters, unread, doubtful };
}

async function paintedPage(
  page: Page,
  file: OpenedFile,
): Promise<PdfLines & { steps: DrawingSteps; ops: Record<string, number> }> {
  const { OPS: ops } = await getResolvedPDFJS();
  const share = (page.pageNumber - 1) / file.pageCount;
  const steps = await withActualText(await page.getOperatorList(), ops, file.streams, share);
  const fonts = await fontsOf(page, steps, ops);
  const { transform } = page.getViewport({ scale: 1 });
  const { pieces, ...counts } = readPieces(steps, transform, ops, (name) => fonts.get(name) ?? fontFrom(null));
  const lines = readLines(pieces).map((line) => ({ ...line, text: storableText(line.text) }));
  return { steps, ops, lines, ...counts };
}

/** The fonts of a page, with names for glyphs that need them. */
async function fontsOf(page: Page, { fnArray, argsArray }: DrawingSteps, ops: Record<string, number>) {
  const glyphs = new Map<string, Map<number, PdfGlyph>>();
  let font = '';
  for (const [index, op] of fnArray.entries()) {
    const args = argsArray[index] as [unknown];
    if (op === ops.setFont) font = String(args[0]);
    if (op !== ops.showText) continue;
    const shown = glyphs.get(font) ?? new Map<number, PdfGlyph>();
    glyphs.set(font, shown);
    for (const glyph of args[0] as (PdfGlyph | number)[]) {
      if (typeof glyph === 'object' && glyph) shown.set(glyph.originalCharCode, glyph);
    }
  }
  const fonts = new Map<string, PdfFont>();
  for (const [name, shown] of glyphs) {
    const handed = page.commonObjs.has(name) ? page.commonObjs.get(name) : null;
    const found = fontFrom(handed);
    await nameGlyphs(found, handed, shown.values());
    fonts.set(name, found);
  }
  return fonts;
}

function damaged(error: unknown): PermanentError {
  return new PermanentError('damaged_document', `The PDF cannot be read (${messageOf(error)}): upload it again.`);
}

function isText(bytes: Uint8Array): boolean {
  const utf16 = utf16Of(bytes);
  if (utf16) return decodes(bytes, utf16);
  if (bytes.length === 0 || bytes.some((byte) => byte < 9 || (byte > 13 && byte < 32 && byte !== escapeByte)))
    return false;
  // Older texts are in an 8-bit code.
  return decodes(bytes, 'utf-8') || !bytes.includes(127);
}

function decodes(bytes: Uint8Array, code: string): boolean {
  try {
    // As a stream, since the probe may end in the midst of a character.
    return !new TextDecoder(code, { fatal: true }).decode(bytes, { stream: true }).includes('\u0000');
  } catch {
    return false;
  }
}

function latin1(bytes: Uint8Array): string {
  return new TextDecoder('latin1').decode(bytes);
}
