import { Buffer } from 'node:buffer';
import { Unzip, UnzipInflate, unzipSync, zipSync } from 'fflate';
import { messageOf, PermanentError } from '../_shared/errors.ts';
import { htmlToMarkdown } from './html-markdown.ts';
import { unsupported } from './media-types.ts';

/** TODO measure. */
export const MAX_DOCX_BYTES = 20 * 1024 * 1024;
export const MAX_DOCX_TEXT_BYTES = 3 * 1024 * 1024;

// So that what comes out of one step is never much more than allowed: a byte may stand for a thousand.
const inflateStep = 4096;

// Read as a heading of the first level, which a document's title is.
const styleMap = ["p[style-name='Title'] => h1:fresh", "p[style-name='Subtitle'] => p:fresh"];

/** The text of a Word document as Markdown. Throws a PermanentError. */
export async function readDocxText(bytes: Uint8Array): Promise<string> {
  const parts = readParts(bytes);
  if (!Object.keys(parts).some((name) => name.startsWith('word/'))) throw unsupported('an archive (ZIP)');
  try {
    // From version 1.13 on it sets __proto__, which Deno does not have.
    const { default: mammoth } = await import('mammoth');
    const noImage = mammoth.images.imgElement(() => Promise.resolve({ src: '' }));
    const buffer = Buffer.from(zipSync(parts, { level: 0 }));
    const { value } = await mammoth.convertToHtml({ buffer }, { styleMap, convertImage: noImage });
    return htmlToMarkdown(value);
  } catch (error) {
    throw damaged(error);
  }
}

/** The parts that hold text, inflated: pictures stay out. */
function readParts(bytes: Uint8Array): Record<string, Uint8Array> {
  let declared = 0;
  try {
    // Only the list of parts, at the end of the file, which one that was cut off does not have.
    unzipSync(bytes, {
      filter: ({ name, originalSize }) => {
        if (isText(name)) declared += originalSize;
        return false;
      },
    });
  } catch (error) {
    throw damaged(error);
  }
  if (declared > MAX_DOCX_TEXT_BYTES) throw tooLarge();
  return inflate(bytes);
}

/** Inflates what is read, however large the file says that it is. */
function inflate(bytes: Uint8Array): Record<string, Uint8Array> {
  const parts: Record<string, Uint8Array> = {};
  let left = MAX_DOCX_TEXT_BYTES;
  const unzip = new Unzip((file) => {
    if (!isText(file.name)) return;
    const chunks: Uint8Array[] = [];
    file.ondata = (error, chunk, final) => {
      if (error) throw error;
      left -= chunk.length;
      if (left < 0) throw tooLarge();
      chunks.push(chunk);
      if (final) parts[file.name] = Buffer.concat(chunks);
    };
    file.start();
  });
  unzip.register(UnzipInflate);
  try {
    for (let at = 0; at < bytes.length; at += inflateStep) {
      unzip.push(bytes.subarray(at, at + inflateStep), at + inflateStep >= bytes.length);
    }
  } catch (error) {
    throw error instanceof PermanentError ? error : damaged(error);
  }
  return parts;
}

function isText(name: string): boolean {
  return /\.(xml|rels)$/i.test(name);
}

function tooLarge(): PermanentError {
  return new PermanentError(
    'file_too_large',
    `The text in the Word document has more than ${MAX_DOCX_TEXT_BYTES / 1024 / 1024} MB when it is unpacked, the most that can be read: split it.`,
  );
}

function damaged(error: unknown): PermanentError {
  return new PermanentError(
    'damaged_document',
    `The Word document cannot be read (${messageOf(error)}): upload it again.`,
  );
}
