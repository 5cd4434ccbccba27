import { z } from 'zod';
import type { Reading } from '../_pipelines/pages-results.ts';
import { PermanentError } from '../_shared/errors.ts';
import { openPdf, type Pdf, sniffDocument } from '../_shared/pdf.ts';
import type { Env } from '../_shared/settings.ts';
import { textQuality } from '../_shared/text-quality.ts';
import { decodeText, plainLines, splitPages } from './plain-pages.ts';
import { BUCKET, projectClient, projectError, storageStatus } from './project-client.ts';

/** A larger file may not fit into a function's memory (256 MB) beside what reading it takes. */
export const MAX_FILE_BYTES = 50 * 1024 * 1024;
export const MAX_PAGES = 5000;

// For how long a file is taken to be unchanged.
const freshMs = 10_000;
const mostOpenFiles = 2;

const sourceRow = z.object({ source_path: z.string(), media_type: z.string() });
type Source = z.output<typeof sourceRow>;

/** What the file's own text says of a page. */
export interface FilePage {
  reading: Reading;
  /** Whether the page has a picture, which may show more than its text says: all but those of a plain text do. */
  hasPicture: boolean;
  coveredByImage: boolean;
}

/** A book's file, open. */
export interface BookFile {
  path: string;
  pageCount: number;
  /** Page `number`, from 1. Throws a PermanentError. */
  page(number: number): Promise<FilePage>;
}

interface OpenFile extends BookFile {
  version: string;
  users: number;
  evicted: boolean;
  close(): Promise<void>;
}

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

/** A URL under which an outside service may fetch the file for the next `seconds`. Throws a StageError. */
export async function signedUrl(path: string, env: Env, seconds: number): Promise<string> {
  const { data, error } = await projectClient(env).storage.from(BUCKET).createSignedUrl(path, seconds);
  if (error) throw projectError(storageStatus(error), error, `Signing a URL for ${path}`);
  return data.signedUrl;
}

function opened(bookId: string, env: Env): Promise<OpenFile> {
  const known = files.get(bookId);
  if (known && Date.now() - known.checkedAt < freshMs) return known.file;
  const file = reopen(bookId, env, known?.file);
  files.delete(bookId);
  files.set(bookId, { checkedAt: Date.now(), file });
  file.catch(() => {
    if (files.get(bookId)?.file === file) files.delete(bookId);
  });
  const [oldest] = files.keys();
  if (files.size > mostOpenFiles && oldest !== undefined) evict(oldest);
  return file;
}

function evict(bookId: string): void {
  const file = files.get(bookId)?.file;
  files.delete(bookId);
  file?.then(markEvicted).catch(() => {});
}

async function markEvicted(file: OpenFile): Promise<void> {
  file.evicted = true;
  await closeUnused(file);
}

async function closeUnused(file: OpenFile): Promise<void> {
  if (file.evicted && file.users === 0) await file.close();
}

async function reopen(bookId: string, env: Env, before: Promise<OpenFile> | undefined): Promise<OpenFile> {
  const client = projectClient(env);
  const source = await findSource(client, bookId);
  const { data: info, error } = await client.storage.from(BUCKET).info(source.source_path);
  if (error) throw fileError(storageStatus(error), error, source);
  const size = info.size ?? 0;
  if (size > MAX_FILE_BYTES) {
    throw new PermanentError(
      'file_too_large',
      `The file has ${megabytes(size)} MB, and at most ${megabytes(MAX_FILE_BYTES)} MB can be read: split it into volumes.`,
    );
  }
  const version = [source.source_path, source.media_type, info.etag, info.lastModified].join(' ');
  const old = await before?.catch(() => undefined);
  if (old?.version === version) return old;
  if (old) await markEvicted(old);
  const { data, error: lost } = await client.storage.from(BUCKET).download(source.source_path);
  if (lost) throw fileError(storageStatus(lost), lost, source);
  const contents = await readContents(new Uint8Array(await data.arrayBuffer()), source);
  return { ...contents, path: source.source_path, version, users: 0, evicted: false };
}

async function findSource(client: ReturnType<typeof projectClient>, bookId: string): Promise<Source> {
  const { data, error, status } = await client.rows
    .from('books')
    .select('source_path, media_type')
    .eq('id', bookId)
    .maybeSingle();
  if (error) throw projectError(status, error, `Reading book ${bookId}`);
  if (!data) throw new PermanentError('no_such_book', `There is no book ${bookId} any more.`);
  return sourceRow.parse(data);
}

function fileError(status: number, error: { message: string }, { source_path: path }: Source): Error {
  if (status !== 404) return projectError(status, error, `Reading ${path}`);
  return new PermanentError(
    'file_not_found',
    `There is no file ${path} in the bucket ${BUCKET}: upload it there, or correct source_path, and queue split again.`,
  );
}

async function readContents(
  bytes: Uint8Array,
  { media_type: type }: Source,
): Promise<Pick<OpenFile, 'pageCount' | 'page' | 'close'>> {
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
  const contents = kind === 'pdf' ? pdfContents(await openPdf(bytes)) : textContents(decodeText(bytes));
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

function pdfContents(pdf: Pdf): Pick<OpenFile, 'pageCount' | 'page' | 'close'> {
  return {
    pageCount: pdf.pageCount,
    async page(number) {
      const { text, lines, coversPageByImage } = await pdf.pageText(number);
      const confidence = Math.round(textQuality(text) * 1000) / 1000;
      return {
        reading: { by: 'text_layer', confidence, lines: lines.map(({ text, size, y }) => ({ text, size, y })) },
        hasPicture: true,
        coveredByImage: coversPageByImage,
      };
    },
    close: () => pdf.close(),
  };
}

function textContents(text: string): Pick<OpenFile, 'pageCount' | 'page' | 'close'> {
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
    close: async () => {},
  };
}

function megabytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}
