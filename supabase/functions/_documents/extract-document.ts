import { z } from 'zod';
import {
  type Env,
  type FinishContext,
  HandedBack,
  type HandlerContext,
  handBack,
  PermanentError,
} from '../_millrace/mod.ts';
import { oneAtATime } from '../_services/one-at-a-time.ts';
import {
  type BegunFile,
  beginFile,
  checkFileSize,
  type FoundFile,
  findFile,
  isInFolder,
  type StoragePlace,
} from '../_services/storage-files.ts';
import { documentRow } from './document-row.ts';
import {
  type ExternalSource,
  type ExtractedText,
  extractText,
  heavyBytes,
  mostBytes,
  type Reader,
  refuseScan,
  tidied,
} from './extract-text.ts';
import { HEAD_BYTES, routeFile } from './media-types.ts';
import { readPdfInCalls } from './pdf-parts.ts';

/** The fields of a document that locate its file. */
export const sourceDocument = z.object({ id: z.string(), source_path: z.string(), clerk_org_id: z.string() });
export type SourceDocument = z.output<typeof sourceDocument>;

const foundDocument = sourceDocument.extend({ extraction_status: z.string() });

interface SourceBytes {
  sourceBytes: number;
}

type ExtractedDocument = (ExtractedText | ExternalSource) & SourceBytes;

/**
 * Fetches a document's file and reads its text, or says which service is to read it, for which only the file's beginning
 * is fetched. One file at a time. Throws a PermanentError that says what is wrong with the file, or a RetriableError when
 * Storage does not answer.
 */
export async function extractDocument(
  document: SourceDocument,
  { env, signal }: Pick<HandlerContext, 'env' | 'signal'>,
): Promise<ExtractedDocument> {
  return oneAtATime(signal, () =>
    withRoutedFile<never>(document, env, async ({ file }) => extractText(await file.all())),
  );
}

/**
 * The same in as many calls as it takes. Hands the row back where a further call is to go on, or where the file is so large that
 * it is read in an isolate without other rows.
 */
export async function extractInCalls(
  document: SourceDocument,
  context: HandlerContext,
): Promise<ExtractedDocument | HandedBack> {
  return oneAtATime(context.signal, () =>
    withRoutedFile<HandedBack>(document, context.env, async ({ file, found, reader }) => {
      if (found.bytes > heavyBytes[reader] && !context.isAlone) return handBack({ alone: true });
      if (reader !== 'pdf') return extractText(await file.all());
      const read = await readPdfInCalls(document.id, file, found, context).catch(refuseScan);
      return read instanceof HandedBack ? read : { by: 'pdf' as const, mediaType: 'application/pdf', ...tidied(read) };
    }),
  );
}

/** A document's file, which `reader` can read. */
interface RoutedFile {
  file: BegunFile;
  found: FoundFile;
  reader: Reader;
}

function withRoutedFile<Back extends HandedBack = never>(
  document: SourceDocument,
  env: Env,
  read: (routed: RoutedFile) => Promise<ExtractedText | ExternalSource | Back>,
): Promise<ExtractedDocument | Back> {
  return withBegunFile(document, env, async (file, found) => {
    const sourceBytes = found.bytes;
    const { mediaType, route } = await routeFile(file.head);
    if ('external' in route) return { external: route.external, mediaType, sourceBytes };
    checkFileSize(sourceBytes, mostBytes[route.reader], 'split it');
    const answer = await read({ file, found, reader: route.reader });
    return answer instanceof HandedBack ? answer : { ...answer, sourceBytes };
  });
}

/** Of a document's file as it is now its type and size, and whether the document has a text. Throws as extractDocument does. */
export async function findSource(
  documentId: string,
  { env, signal }: Pick<FinishContext, 'env' | 'signal'>,
): Promise<{ mediaType: string; isExtracted: boolean } & SourceBytes> {
  const columns = 'id, source_path, clerk_org_id, extraction_status';
  const row = await documentRow(documentId, columns, foundDocument, env, signal);
  return withBegunFile(row, env, async (file, { bytes: sourceBytes }) => {
    const { mediaType } = await routeFile(file.head);
    return { mediaType, sourceBytes, isExtracted: row.extraction_status === 'completed' };
  });
}

async function withBegunFile<T>(
  document: SourceDocument,
  env: Env,
  work: (file: BegunFile, found: FoundFile) => Promise<T>,
): Promise<T> {
  const place = placeOf(document);
  const found = await findFile(place, env);
  if (found.bytes === 0) throw new PermanentError('empty_document', 'The file is empty: upload it again.');
  const file = await beginFile(place, found, HEAD_BYTES, env);
  try {
    return await work(file, found);
  } finally {
    await file.cancel();
  }
}

/** Where the document's file lies in Storage. Throws the PermanentError `strange_path`. */
export function placeOf({ source_path: path, clerk_org_id: organisation }: SourceDocument): StoragePlace {
  if (!isInFolder(organisation, path)) {
    throw new PermanentError(
      'strange_path',
      `source_path is ${JSON.stringify(path)}, but must lie under ${organisation}/ and have no part that a URL reads otherwise: correct it.`,
    );
  }
  const remedy = 'upload it there, or correct source_path, and queue extraction again';
  return { bucket: 'documents', path, missing: { code: 'file_not_found', remedy } };
}
