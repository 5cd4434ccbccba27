import { z } from 'zod';
import {
  type HandedBack,
  type HandlerContext,
  handBack,
  PermanentError,
  parseJson,
  stepsOf,
} from '../_millrace/mod.ts';
import { type PdfPart, type PdfText, partsText, readPdfPart } from '../_services/pdf/pdf-text.ts';
import {
  type BegunFile,
  type FoundFile,
  fetchFile,
  findFile,
  removeFolder,
  type StoragePlace,
  uploadFile,
} from '../_services/storage-files.ts';
import { TEXT_BUCKET } from './stored-text.ts';

/** The text is put together in one call: measured with all that the function loads, 0.9 s of CPU and 200 MB for so much. */
export const MAX_JOINED_CHARACTERS = 3_000_000;

/** A part that was read and stored. */
const step = z.object({
  /** Of the file. */
  version: z.string(),
  from: z.int(),
  to: z.int(),
  page_count: z.int(),
  characters: z.int(),
  path: z.string(),
});
type Step = z.output<typeof step>;

/** The text of a PDF, and whether files still hold the parts that it was put together from. */
export interface JoinedPdf extends PdfText {
  hasParts: boolean;
}

/**
 * Reads a PDF in as many calls as it takes: each stores its part, and the last one puts them together. A retry goes on behind the
 * last part, unless the file was replaced. Throws a StageError.
 */
export async function readPdfInCalls(
  documentId: string,
  file: BegunFile,
  { version }: FoundFile,
  context: HandlerContext,
): Promise<JoinedPdf | HandedBack> {
  const { done, record } = await stepsOf('pages', step, context);
  const steps = await whatStands(done, version, context);
  const last = steps.at(-1);
  if (last && isEnough(steps)) return joined(steps, context);
  const part = await readPdfPart(await file.all(), (last?.to ?? 0) + 1);
  const { from, to, pageCount, characters } = part;
  if (from === 1 && to === pageCount) return { ...partsText([part]), hasParts: false };
  // A run that was cancelled, or that read a former file, has left its parts.
  if (from === 1) await dropParts(documentId, context);
  const path = `${partsFolder(documentId)}/${context.idempotencyKey}-${from}-${to}.json`;
  const bytes = new TextEncoder().encode(JSON.stringify(part));
  await uploadFile({ bucket: TEXT_BUCKET, path }, bytes, 'application/json', context.env);
  await record({ version, from, to, page_count: pageCount, characters, path });
  return handBack();
}

/** Removes the files that hold parts of a document. Where that fails they stay until the document is read in parts once more. */
export async function dropParts(documentId: string, { env, log }: HandlerContext): Promise<void> {
  await removeFolder(TEXT_BUCKET, partsFolder(documentId), env).catch((error: Error) => {
    log.warn('the parts of a text were not removed', { document: documentId, error: error.message });
  });
}

const partsFolder = (documentId: string) => `${documentId}.parts`;

/** The steps since the last beginning, for the file as it is now. None where their parts have been removed. */
async function whatStands(done: readonly Step[], version: string, { env }: HandlerContext): Promise<Step[]> {
  const steps = done.slice(done.findLastIndex(({ from }) => from === 1));
  const [first] = steps;
  if (!first || first.version !== version) return [];
  try {
    await findFile(placeOf(first), env);
    return steps;
  } catch (error) {
    if (error instanceof PermanentError && error.code === 'part_missing') return [];
    throw error;
  }
}

function isEnough(steps: readonly Step[]): boolean {
  const characters = steps.reduce((sum, one) => sum + one.characters, 0);
  return characters >= MAX_JOINED_CHARACTERS || steps.some(({ to, page_count }) => to === page_count);
}

async function joined(steps: readonly Step[], { env }: HandlerContext): Promise<JoinedPdf> {
  const parts: PdfPart[] = [];
  for (const one of steps) {
    const place = placeOf(one);
    const bytes = await fetchFile(place, await findFile(place, env), env);
    parts.push(parseJson(new TextDecoder().decode(bytes)) as PdfPart);
  }
  return { ...partsText(parts), hasParts: true };
}

function placeOf({ path }: Step): StoragePlace {
  return { bucket: TEXT_BUCKET, path, missing: { code: 'part_missing', remedy: 'queue extraction again' } };
}
