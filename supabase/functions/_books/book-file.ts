import { z } from 'zod';
import { type Env, PermanentError } from '../_millrace/mod.ts';
import type { Reading } from '../_pipelines/pages-results.ts';
import { openPdf, type Pdf, sniffDocument } from '../_services/pdf/pdf.ts';
import type { PdfOutlineEntry } from '../_services/pdf/pdf-outline.ts';
import { projectClient, projectError } from '../_services/project-client.ts';
import {
  checkFileSize,
  fetchFile,
  findFile,
  isInFolder,
  type StoragePlace,
  signedUrl,
} from '../_services/storage-files.ts';
import { decodeText } from '../_services/text/decode-text.ts';
import { plainLines, splitPages } from './plain-pages.ts';

/** The bucket in which books and the documents made of them lie. */
export const BUCKET = 'books';
/** Fetching and opening a file takes twice its size beside 60 MB, and a function has 256 MB. */
export const MAX_FILE_BYTES = 50 * 1024 * 1024;
/** Opening a PDF takes 0.25 s of CPU for each 1000 pages, and a function has 2 s, of which it should use half. */
export const MAX_PAGES = 3000;

// For how long a file is taken to be unchanged.
const freshMs = 10_000;
const mostOpenFiles = 4;
const mostOpenBytes = MAX_FILE_BYTES;

const sourceRow = z.object({ account_id: z.string(), source_path: z.string(), media_type: z.string() });
type Source = z.output<typeof sourceRow>;

/** A page by the file's own text. */
export interface FilePage {
  reading: Reading;
  /** Whether the page has a picture, which may show more than its text says: all but those of a plain text do. */
  hasPicture: boolean;
  coveredByImage: boolean;
}

/** A book's file, open. */
export interface BookFile {
  pageCount: number;
  /** Page `number`, from 1. Throws a PermanentError. */
  page(number: number): Promise<FilePage>;
  /** The outline that the file brings along; empty where it has none, as a plain text. */
  outline(): Promise<PdfOutlineEntry[]>;
}

interface OpenFile extends BookFile {
  version: string;
  bytes: number;
  users: number;
  evicted: boolean;
  close(): Promise<void>;
}

type FileContents = Pick<OpenFile, 'pageCount' | 'page' | 'outline' | 'close'>;

// Of this isolate: the pages of a batch, and of the batches after it, mostly belong to one book.
const files = new Map<string, { checkedAt: number; file: Promise<OpenFile> }>();

/**
 * Opens the book's file for `work`; a file that is open already, and has not changed in Storage, is not fetched again.
 * Throws a PermanentError that says what is wrong with the file, or a RetriableError when Storage does not answer.
 */
export async function withBookFile<T>(bookId: string, env: Env, work: (file: BookFile) => Promise<T>): Promise<T> {
  const file = await opened(bookId, env);
  file.users++;
  try {
    return await work(file);
  } finally {
    file.users--;
    await closeUnused(file);
  }
}

/** A URL under which an outside service may fetch a book's file for the next `seconds`. Throws a StageError. */
export async function bookFileUrl(bookId: string, env: Env, seconds: number): Promise<string> {
  const { source_path: path } = await findSource(projectClient(env), bookId);
  return signedUrl(placeOf(path), env, seconds);
}

function opened(bookId: string, env: Env): Promise<OpenFile> {
  const known = files.get(bookId);
  if (known && Date.now() - known.checkedAt < freshMs) return known.file;
  const file = reopen(bookId, env, known?.file);
  files.delete(bookId);
  files.set(bookId, { checkedAt: Date.now(), file });
  file.then(
    () => makeRoom(),
    () => {
      if (files.get(bookId)?.file === file) files.delete(bookId);
    },
  );
  return file;
}

/** Closes the files that were opened first, as soon as nobody reads them, until the others are few and small enough. */
async function makeRoom(): Promise<void> {
  const open = await Promise.all(
    [...files].map(async ([id, { file }]) => ({ id, file: await file.catch(() => null) })),
  );
  let bytes = open.reduce((sum, { file }) => sum + (file?.bytes ?? 0), 0);
  let count = open.length;
  for (const { id, file } of open.slice(0, -1)) {
    if (count <= mostOpenFiles && bytes <= mostOpenBytes) return;
    files.delete(id);
    count--;
    bytes -= file?.bytes ?? 0;
    if (file) await markEvicted(file);
  }
}

async function markEvicted(file: OpenFile): Promise<void> {
  file.evicted = true;
  await closeUnused(file);
}

async function closeUnused(file: OpenFile): Promise<void> {
  if (file.evicted && file.users === 0) await file.close();
}

async function reopen(bookId: string, env: Env, before: Promise<OpenFile> | undefined): Promise<OpenFile> {
  const source = await findSource(projectClient(env), bookId);
  const place = placeOf(source.source_path);
  const found = await findFile(place, env);
  checkFileSize(found.bytes, MAX_FILE_BYTES, 'split it into volumes');
  const version = [source.source_path, source.media_type, found.version].join(' ');
  const old = await before?.catch(() => undefined);
  if (old?.version === version) return old;
  if (old) await markEvicted(old);
  const contents = await readContents(await fetchFile(place, found, env), source);
  return { ...contents, version, bytes: found.bytes, users: 0, evicted: false };
}

function placeOf(path: string): StoragePlace {
  const remedy = 'upload it there, or correct source_path, and queue split again';
  return { bucket: BUCKET, path, missing: { code: 'file_not_found', remedy } };
}

async function findSource(client: ReturnType<typeof projectClient>, bookId: string): Promise<Source> {
  const { data, error, status } = await client.rows
    .from('books')
    .select('account_id, source_path, media_type')
    .eq('id', bookId)
    .maybeSingle();
  if (error) throw projectError(status, error, `Reading book ${bookId}`);
  if (!data) throw new PermanentError('no_such_book', `There is no book ${bookId} any more.`);
  const source = sourceRow.parse(data);
  if (!isInFolder(source.account_id, source.source_path)) {
    throw new PermanentError(
      'strange_path',
      `source_path is ${JSON.stringify(source.source_path)}, but must lie under ${source.account_id}/ and have no part that a URL reads otherwise: correct it.`,
    );
  }
  return source;
}

async function readContents(bytes: Uint8Array, { media_type: type }: Source): Promise<FileContents> {
  if (bytes.length === 0) throw new PermanentError('empty_document', 'The file is empty: upload it again.');
  const kind = await sniffDocument(bytes);
  const found = { pdf: 'application/pdf', text: 'text/plain', image: null, unknown: null }[kind];
  if (found === null) {
    const what = kind === 'image' ? 'an image' : 'of a kind that cannot be read';
    throw new PermanentError('unsupported_type', `The file is ${what}: upload a PDF or a plain text.`);
  }
  if (found !== type) {
    throw new PermanentError(
      'mislabelled_document',
      `media_type is ${type}, but the file is ${found}: correct the one or upload the other.`,
    );
  }
  const contents = kind === 'pdf' ? pdfContents(await openPdf(bytes)) : textContents(decodeText(bytes).text);
  if (contents.pageCount === 0) {
    throw new PermanentError('no_pages', 'The file has no page with anything on it: upload another.');
  }
  if (contents.pageCount > MAX_PAGES) {
    throw new PermanentError(
      'too_many_pages',
      `The file has ${contents.pageCount} pages, and at most ${MAX_PAGES} make a book: split it into volumes.`,
    );
  }
  return contents;
}

function pdfContents(pdf: Pdf): FileContents {
  return {
    pageCount: pdf.pageCount,
    async page(number) {
      const { quality, lines, coversPageByImage } = await pdf.pageText(number);
      const confidence = Math.round(quality * 1000) / 1000;
      return {
        reading: { by: 'text_layer', confidence, lines },
        hasPicture: true,
        coveredByImage: coversPageByImage,
      };
    },
    outline: () => pdf.outline(),
    close: () => pdf.close(),
  };
}

function textContents(text: string): FileContents {
  const pages = splitPages(text);
  return {
    pageCount: pages.length,
    async page(number) {
      const page = pages[number - 1];
      if (page === undefined) {
        throw new PermanentError('no_such_page', `Page ${number} is asked for, but the text has ${pages.length}.`);
      }
      const reading: Reading = { by: 'plain_text', confidence: 1, lines: plainLines(page) };
      return { reading, hasPicture: false, coveredByImage: false };
    },
    outline: async () => [],
    close: async () => {},
  };
}
