import path from 'node:path';
import { sniffDocument } from '../../../supabase/functions/_services/pdf/pdf.ts';
import type { Stack } from '../../platform/stack.ts';
import { readFileNamed } from '../read-file.ts';
import { buildSampleBook } from '../samples/books/build-pdf.ts';
import { stackClient } from '../stack-client.ts';

/** A book to run on. */
export interface BookSource {
  name: string;
  bytes: Uint8Array;
  mediaType: 'application/pdf' | 'text/plain';
}

/** Resolves to the sample book, or the one in `file`. Throws an error that says why the file cannot be had. */
export async function readBookSource(file: string | undefined): Promise<BookSource> {
  if (file === undefined) {
    return { name: 'the sample book', bytes: await buildSampleBook(), mediaType: 'application/pdf' };
  }
  const bytes = readFileNamed(file, 'Name a PDF or a plain text.');
  const mediaType = (await sniffDocument(bytes)) === 'text' ? 'text/plain' : 'application/pdf';
  return { name: path.basename(file), bytes, mediaType };
}

/** Uploads the book and inserts its row, as an application does; returns the row's id. Throws what Storage says. */
export async function addBook({ name, bytes, mediaType }: BookSource, stack: Stack): Promise<string> {
  const { rows, storage } = stackClient(stack);
  const [id, account] = [crypto.randomUUID(), crypto.randomUUID()];
  const sourcePath = `${account}/${id}.${mediaType === 'text/plain' ? 'txt' : 'pdf'}`;
  const file = new Blob([new Uint8Array(bytes)], { type: mediaType });
  const { error } = await storage.from('books').upload(sourcePath, file, { contentType: mediaType });
  if (error) throw new Error(`Storage did not take ${name}: ${error.message}.`);
  const inserted = await rows
    .from('books')
    .insert({ id, account_id: account, title: name, source_path: sourcePath, media_type: mediaType });
  if (inserted.error) throw new Error(`The book was not inserted: ${inserted.error.message}.`);
  return id;
}

/** Resolves to a link under which the document can be opened for the next hour. */
export async function documentLink(documentPath: string, stack: Stack): Promise<string> {
  const { data } = await stackClient(stack).storage.from('books').createSignedUrl(documentPath, 3600);
  return data?.signedUrl ?? '';
}
