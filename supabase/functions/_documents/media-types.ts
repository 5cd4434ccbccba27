import { excerpt, PermanentError } from '../_millrace/mod.ts';
import { sniffMediaType } from '../_services/pdf/pdf.ts';
import { isHtml } from './html-text.ts';

/** The reader of a type of file: a reader of this project or an external service. */
export type Route = { reader: 'pdf' | 'docx' | 'html' | 'text' } | { external: 'transcription' | 'ocr' };

/** Enough of a file's beginning to tell its type. */
export const HEAD_BYTES = 64 * 1024;

const docx = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
const routes: Record<string, Route> = {
  'application/pdf': { reader: 'pdf' },
  [docx]: { reader: 'docx' },
  'application/vnd.ms-word.document.macroenabled.12': { reader: 'docx' },
  'text/html': { reader: 'html' },
  'text/plain': { reader: 'text' },
  'text/vtt': { reader: 'text' },
  'image/png': { external: 'ocr' },
  'image/jpeg': { external: 'ocr' },
  'application/ogg': { external: 'transcription' },
  'application/vnd.ms-asf': { external: 'transcription' },
};
// Notes, and no sound.
const silent = ['audio/midi'];

const oldOffice = 'application/x-cfb';
// The name under which Office keeps a document with a password, in UTF-16.
const encrypted = 'EncryptedPackage'.split('').join('\0');

/** Common names of the refused types. */
const names: Record<string, string> = {
  'application/vnd.oasis.opendocument.text': 'an OpenDocument text (.odt)',
  'application/vnd.oasis.opendocument.spreadsheet': 'an OpenDocument spreadsheet (.ods)',
  'application/vnd.oasis.opendocument.presentation': 'an OpenDocument presentation (.odp)',
  'application/epub+zip': 'an EPUB book (.epub)',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'an Excel workbook (.xlsx)',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'a PowerPoint presentation (.pptx)',
};

const remedies: [RegExp, string][] = [
  [/^image\//, 'save it as PNG or JPEG'],
  [/x-cfb$/, 'an old .doc is to be saved as .docx, and a document with a password without it'],
  [/rtf$|opendocument\.text|epub/, 'save it as .docx or as PDF'],
  [/opendocument|officedocument/, 'save it as PDF'],
];
const accepted =
  'a PDF, a Word document (.docx), HTML, Markdown, plain text, a picture (PNG or JPEG), audio or video can be read';

/**
 * Tells the type of a file by its beginning, whatever its name says, and what reads it. Throws the PermanentError
 * `unsupported_type` where nothing does.
 */
export async function routeFile(head: Uint8Array): Promise<{ mediaType: string; route: Route }> {
  const mediaType = await sniff(head);
  if (mediaType === oldOffice && latin1(head).includes(encrypted)) {
    throw new PermanentError('encrypted_document', 'The document asks for a password: upload it without one.');
  }
  if (mediaType === null)
    throw unsupported(
      'of a type that its bytes do not tell (damaged, encrypted, or in a format of some program’s own)',
    );
  const route = routes[mediaType];
  if (route) return { mediaType, route };
  if (/^(audio|video)\//.test(mediaType) && !silent.includes(mediaType)) {
    return { mediaType, route: { external: 'transcription' } };
  }
  throw unsupported(mediaType);
}

/**
 * The type of an archive that is no Word document, by its declared type and the names of its parts; null where
 * neither says it.
 */
export function archiveType(parts: readonly string[], declared: string): string | null {
  const type = excerpt(declared.trim(), 100);
  if (names[type]) return type;
  if (parts.includes('META-INF/container.xml')) return 'application/epub+zip';
  return parts.includes('content.xml') && parts.includes('META-INF/manifest.xml')
    ? 'application/vnd.oasis.opendocument.text'
    : null;
}

/** The PermanentError for a file that is `what`, a media type or in words, with what can be done about it. */
export function unsupported(what: string): PermanentError {
  const remedy = remedies.find(([type]) => type.test(what))?.[1];
  return new PermanentError(
    'unsupported_type',
    `The file is ${names[what] ?? what}: ${remedy ? `${remedy}; ` : ''}${accepted}.`,
  );
}

async function sniff(head: Uint8Array): Promise<string | null> {
  const type = await sniffMediaType(head);
  // A tag may be longer than the beginning, with the cover's picture in it.
  if (type === null && latin1(head.subarray(0, 3)) === 'ID3') return 'audio/mpeg';
  // The part that says what an archive holds may come last.
  if (type === 'application/zip') return docx;
  if (type === 'application/xml' || type === 'text/plain') return isHtml(head) ? 'text/html' : type;
  return type;
}

function latin1(bytes: Uint8Array): string {
  return new TextDecoder('latin1').decode(bytes);
}
