import { Buffer } from 'node:buffer';
import { Unzip, UnzipInflate, unzipSync } from 'fflate';
import { messageOf, PermanentError } from '../_millrace/mod.ts';
import { decodeText } from '../_services/text/decode-text.ts';
import { docxToMarkdown } from './docx-markdown.ts';
import { archiveType, unsupported } from './media-types.ts';

/** Mostly pictures, which are passed over: takes 0.8 s of CPU with all that the function loads, and 170 MB. */
export const MAX_DOCX_BYTES = 50 * 1024 * 1024;
/** Unpacked: takes 0.8 s of CPU with all that the function loads, and 110 MB. A page as Word writes it has some 20 KB. */
export const MAX_DOCX_TEXT_BYTES = 6 * 1024 * 1024;

// Of the part that names an archive's type.
const longestType = 200;
// So that what comes out of one step is never much more than allowed: a byte may stand for a thousand.
const inflateStep = 16 * 1024;

/** The text of a Word document as Markdown. Throws a PermanentError. */
export function readDocxText(bytes: Uint8Array): string {
  const { parts, names } = readParts(bytes);
  const document = Object.keys(parts).find((name) => /document\d*\.xml$/.test(name));
  if (document === undefined) {
    const declared = decodeText((parts.mimetype ?? new Uint8Array()).subarray(0, longestType)).text;
    throw unsupported(archiveType(names, declared) ?? 'an archive (ZIP)');
  }
  const part = (name: string) => decodeText(parts[name] ?? new Uint8Array(), { kind: 'xml' }).text;
  return docxToMarkdown({
    document: part(document),
    styles: part('word/styles.xml'),
    footnotes: part('word/footnotes.xml'),
    endnotes: part('word/endnotes.xml'),
  });
}

/** The parts that hold text, inflated: pictures stay out. */
function readParts(bytes: Uint8Array): { parts: Record<string, Uint8Array>; names: string[] } {
  const names: string[] = [];
  let declared = 0;
  try {
    // Only the list of parts, at the end of the file, which one that was cut off does not have.
    unzipSync(bytes, {
      filter: ({ name: written, originalSize }) => {
        const name = partName(written);
        names.push(name);
        if (isText(name)) declared += originalSize;
        return false;
      },
    });
  } catch (error) {
    throw damaged(error);
  }
  if (declared > MAX_DOCX_TEXT_BYTES) throw tooLarge();
  return { parts: inflate(bytes), names };
}

/** Inflates what is read, however large the file says that it is. */
function inflate(bytes: Uint8Array): Record<string, Uint8Array> {
  const parts: Record<string, Uint8Array> = {};
  let left = MAX_DOCX_TEXT_BYTES;
  const unzip = new Unzip((file) => {
    const name = partName(file.name);
    if (!isText(name)) return;
    const chunks: Uint8Array[] = [];
    file.ondata = (error, chunk, final) => {
      if (error) throw error;
      left -= chunk.length;
      if (left < 0) throw tooLarge();
      chunks.push(chunk);
      if (final) parts[name] = Buffer.concat(chunks);
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

/** A part's name as the standard has it: some producers write backslashes or a slash in front, and no two parts differ by case. */
function partName(written: string): string {
  const name = written.replaceAll('\\', '/').replace(/^\//, '');
  return /^word\//i.test(name) ? name.toLowerCase() : name;
}

function isText(name: string): boolean {
  // OpenDocument texts and EPUB books name themselves in the part mimetype.
  return name === 'mimetype' || /^word\/(document\d*|styles|footnotes|endnotes)\.xml$/.test(name);
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
