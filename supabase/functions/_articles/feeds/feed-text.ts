import { Gunzip } from 'fflate';
import { messageOf, PermanentError } from '../../_millrace/mod.ts';

/** Unpacked. To parse so much takes 0.6 s of CPU; a sitemap of 50,000 addresses has some 5 MB. */
export const MAX_FEED_BYTES = 15 * 1024 * 1024;

// A packed byte may stand for a thousand, so that what comes out of one step is never much more than allowed.
const step = 16 * 1024;
/** Of the declaration that names the encoding. */
const longestDeclaration = 200;

/**
 * The text of a feed, piece by piece: unpacked where it is packed by gzip, whatever its name, and decoded by its byte order
 * mark, else by `contentType`, else by its own declaration. Throws the PermanentErrors `damaged_feed` and `feed_too_large`.
 */
export async function* feedText(body: AsyncIterable<Uint8Array>, contentType: string): AsyncGenerator<string> {
  let decoder: TextDecoder | undefined;
  let bytes = 0;
  for await (const piece of unpack(body)) {
    bytes += piece.length;
    if (bytes > MAX_FEED_BYTES) throw tooLarge();
    decoder ??= decoderFor(piece, contentType);
    yield decoder.decode(piece, { stream: true });
  }
  if (decoder) yield decoder.decode();
}

/** The error for a feed with more than can be read. */
export function tooLarge(): PermanentError {
  const most = MAX_FEED_BYTES / 1024 / 1024;
  return new PermanentError(
    'feed_too_large',
    `The feed has more than the ${most} MB that can be read: enter a smaller one of the site, such as one of a section.`,
  );
}

async function* unpack(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const unpacked: Uint8Array[] = [];
  let gunzip: Gunzip | null | undefined;
  for await (const piece of atLeastTwo(body)) {
    if (gunzip === undefined && isGzip(piece)) {
      gunzip = new Gunzip();
      gunzip.ondata = (data) => unpacked.push(data);
    }
    if (!gunzip) {
      gunzip = null;
      yield piece;
      continue;
    }
    for (let at = 0; at < piece.length; at += step) {
      try {
        gunzip.push(piece.subarray(at, at + step), false);
      } catch (error) {
        throw new PermanentError(
          'damaged_feed',
          'The feed is packed by gzip, but cannot be unpacked: open it in a browser, and tell the site’s owner.',
          undefined,
          messageOf(error),
        );
      }
      yield* unpacked.splice(0);
    }
  }
}

/** The same bytes; the first piece is long enough to tell what they are. */
async function* atLeastTwo(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let head: Uint8Array | null = new Uint8Array();
  for await (const piece of body) {
    if (head === null) {
      yield piece;
      continue;
    }
    const joined: Uint8Array = new Uint8Array(head.length + piece.length);
    joined.set(head);
    joined.set(piece, head.length);
    head = joined;
    if (head.length < longestDeclaration) continue;
    yield head;
    head = null;
  }
  if (head !== null && head.length > 0) yield head;
}

function isGzip([first, second]: Uint8Array): boolean {
  return first === 0x1f && second === 0x8b;
}

function decoderFor(head: Uint8Array, contentType: string): TextDecoder {
  const [first, second] = head;
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le');
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be');
  const declaration = new TextDecoder('latin1').decode(head.subarray(0, longestDeclaration));
  const declared = /^\s*<\?xml[^>]*\bencoding\s*=\s*["']([\w.:-]+)["']/i.exec(declaration)?.[1];
  const charset = /;\s*charset\s*=\s*"?([\w.:-]+)/i.exec(contentType)?.[1];
  const isUtf8 = first === 0xef && second === 0xbb;
  try {
    return new TextDecoder(isUtf8 ? 'utf-8' : (charset ?? declared ?? 'utf-8'));
  } catch {
    // A name that nobody knows says nothing.
    return new TextDecoder('utf-8');
  }
}
