import { PermanentError } from '../_millrace/mod.ts';
import type { Extractor, PartlyRead } from '../_pipelines/documents-results.ts';
import { MAX_PDF_BYTES, readPdfText } from '../_services/pdf/pdf-text.ts';
import { charsetDoubts } from '../_services/text/charset-doubts.ts';
import { type DecodedText, decodeText } from '../_services/text/decode-text.ts';
import { codeText } from '../_services/text/markdown-blocks.ts';
import { tidyText } from '../_services/text/tidy-text.ts';
import { MAX_DOCX_BYTES, readDocxText } from './docx-text.ts';
import { htmlToMarkdown } from './html-markdown.ts';
import { hasMarkdownMarks, isCode, withMarkedHeadings } from './markdown-text.ts';
import { type Route, routeFile } from './media-types.ts';

/** Takes 0.7 s of CPU with all that the function loads, and 150 MB. */
export const MAX_TEXT_BYTES = 8 * 1024 * 1024;
/** Takes 0.8 s of CPU with all that the function loads, and 100 MB; twice that where it is next to no text. */
export const MAX_HTML_BYTES = 3 * 1024 * 1024;

/** How large a file may be for its reader. */
export const mostBytes = { pdf: MAX_PDF_BYTES, docx: MAX_DOCX_BYTES, html: MAX_HTML_BYTES, text: MAX_TEXT_BYTES };

const MB = 1024 * 1024;
/**
 * Larger files are read with no other row in their isolate, which they might end. Measured: a PDF of 50 MB takes 150 MB and twice
 * the CPU of one of 1 MB with the same text, and up to 10 MB neither differs by more than a fifth.
 */
export const heavyBytes = { pdf: 10 * MB, docx: 10 * MB, html: MB, text: 3 * MB };

export type Reader = keyof typeof mostBytes;

/** A file's text: headings are those of Markdown, pages are parted by \f. */
export interface ExtractedText {
  by: Extractor;
  mediaType: string;
  /** Null where the source has none. */
  pages: number | null;
  text: string;
  partly_read?: PartlyRead;
  /** Sentences about what the text may lack. */
  doubts?: string[];
  guessed_charset?: string;
  /** Whether files still hold the parts that the text was put together from. */
  hasParts?: boolean;
}

/** Says that a service elsewhere is to read the file. */
export interface ExternalSource {
  external: Extract<Route, { external: string }>['external'];
  mediaType: string;
}

/**
 * Reads the text of a file, by its content and not by its name. The bytes are handed over and cannot be read
 * afterwards. Throws a PermanentError that says what is wrong with the file and what to do about it.
 */
export async function extractText(bytes: Uint8Array): Promise<ExtractedText | ExternalSource> {
  if (bytes.length === 0) throw new PermanentError('empty_document', 'The file is empty: upload it again.');
  const { mediaType, route } = await routeFile(bytes);
  if ('external' in route) return { external: route.external, mediaType };
  return { mediaType, ...tidied(await readers[route.reader](bytes)) };
}

/** The same reading with its text as the text is stored. Throws the PermanentError `no_text` for a blank text. */
export function tidied<Read extends { text: string }>(read: Read): Read {
  const text = tidyText(read.text);
  if (text.trim() === '') {
    throw new PermanentError('no_text', 'The file has no text in it that a reader would see: upload another.');
  }
  return { ...read, text };
}

type Read = Omit<ExtractedText, 'mediaType'> & { mediaType?: string };

const readers: Record<Reader, (bytes: Uint8Array) => Promise<Read>> = {
  pdf: async (bytes) => ({ by: 'pdf', ...(await readPdfText(bytes).catch(refuseScan)) }),
  docx: async (bytes) => ({ by: 'docx', pages: null, text: withoutPages(readDocxText(bytes)) }),
  html: async (bytes) => {
    const decoded = decodeText(bytes, { kind: 'html' });
    return { by: 'html', pages: null, text: withoutPages(htmlToMarkdown(decoded.text)), ...howDecoded(decoded) };
  },
  text: async (bytes) => {
    const decoded = decodeText(bytes);
    return { ...readText(decoded.text), ...howDecoded(decoded) };
  },
};

/** Says what can be done with pictures of pages; anything else is thrown as it is. */
export function refuseScan(error: unknown): never {
  if (!(error instanceof PermanentError && error.code === 'no_text_layer')) throw error;
  throw new PermanentError(
    error.code,
    'The PDF has pictures of pages and no text: a scanned book is for the books pipelines, which read pictures; of ' +
      'anything else upload each page as PNG or JPEG.',
  );
}

/** How a text was decoded; empty where the charset was declared and every letter was read. */
function howDecoded({
  text,
  charset,
  guessed,
  lost,
}: DecodedText): Pick<Read, 'partly_read' | 'guessed_charset' | 'doubts'> {
  const partly_read = { unread_letters: lost, letters: text.length, pages: [], picture_pages: [] };
  const doubts = charsetDoubts({ charset, guessed, lost });
  return {
    ...(lost > 0 ? { partly_read } : {}),
    ...(guessed ? { guessed_charset: charset } : {}),
    ...(doubts.length > 0 ? { doubts } : {}),
  };
}

function readText(text: string): Read {
  const pages = text.includes('\f') ? text.trimEnd().split('\f').length : null;
  if (!hasMarkdownMarks(text)) return { by: 'plain_text', pages, text };
  if (isCode(text)) return { by: 'plain_text', pages, text: codeText(text.trimEnd()) };
  return { by: 'markdown', mediaType: 'text/markdown', pages, text: withMarkedHeadings(text.replace(/\r\n?/g, '\n')) };
}

function withoutPages(text: string): string {
  return text.replaceAll('\f', '\n');
}
