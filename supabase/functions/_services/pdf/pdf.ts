import { fileTypeFromBuffer } from 'file-type';
import { getDocumentProxy, getResolvedPDFJS } from 'unpdf';
import { messageOf, PermanentError, storableText } from '../../_millrace/mod.ts';
import { utf16Of } from '../text/decode-text.ts';
import { coversPage, isDrawnOn } from './pdf-images.ts';
import { joinLines, type PdfLine, readLines } from './pdf-lines.ts';
import { type PdfOutlineEntry, readOutline } from './pdf-outline.ts';

/** One page's text layer. Lengths are in points (1/72 inch). */
export interface PdfPage {
  /** The lines, parted by \n, with an empty line between paragraphs that stand apart; empty when there is no text layer. */
  text: string;
  lines: PdfLine[];
  width: number;
  height: number;
  /** Whether images cover nearly the whole page, as on a scanned one, which may have a text layer all the same. */
  coversPageByImage: boolean;
}

/** An open PDF. */
export interface Pdf {
  pageCount: number;
  /** Reads the text layer of page `number`, from 1. Throws a PermanentError: no_such_page or damaged_document. */
  pageText(number: number): Promise<PdfPage>;
  /** Only the lines of page `number`, from 1, for a third of the work. Throws as pageText does. */
  pageLines(number: number): Promise<PdfLine[]>;
  /** Whether page `number`, from 1, has neither text nor pictures nor lines. Throws as pageText does. */
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
  if (!latin1(bytes.subarray(-tailBytes)).includes('%%EOF')) {
    throw new PermanentError('damaged_document', 'The PDF ends before its end mark %%EOF: upload the whole file.');
  }
  const document = await open(bytes);
  return {
    pageCount: document.numPages,
    pageText: (number) => withPage(document, number, readPage),
    pageLines: (number) => withPage(document, number, readPageLines),
    isBlank: (number) => withPage(document, number, isPageBlank),
    outline: () => readOutline(document).catch(() => []),
    close: () => document.destroy(),
  };
}

type Document = Awaited<ReturnType<typeof getDocumentProxy>>;
type Page = Awaited<ReturnType<Document['getPage']>>;

const described: Record<Exclude<DocumentKind, 'pdf'>, string> = {
  image: 'an image',
  text: 'text',
  unknown: 'something unknown',
};

async function open(bytes: Uint8Array): Promise<Document> {
  try {
    // Images are left out undecoded: decoding one takes a hundred times the work of reading the page's text.
    return await getDocumentProxy(bytes, { maxImageSize: 0, disableFontFace: true, verbosity: 0 });
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

async function readPage(page: Page): Promise<PdfPage> {
  const { width, height } = page.getViewport({ scale: 1 });
  const lines = await readPageLines(page);
  const steps = await page.getOperatorList();
  const coversPageByImage = coversPage(steps, page.view, (await getResolvedPDFJS()).OPS);
  return { text: joinLines(lines), lines, width, height, coversPageByImage };
}

async function isPageBlank(page: Page): Promise<boolean> {
  if ((await readPageLines(page)).length > 0) return false;
  return !isDrawnOn(await page.getOperatorList(), page.view, (await getResolvedPDFJS()).OPS);
}

async function readPageLines(page: Page): Promise<PdfLine[]> {
  const { items } = await page.getTextContent();
  const lines = readLines(items, page.getViewport({ scale: 1 }).transform);
  return lines.map((line) => ({ ...line, text: storableText(line.text) }));
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
