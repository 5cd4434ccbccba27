import { Gunzip } from 'fflate';
import { messageOf, PermanentError } from '../../_millrace/mod.ts';
import { FeedDecoder, joined } from './feed-decoder.ts';

/** Unpacked. To parse so much takes 0.6 s of CPU; a sitemap of 50,000 addresses has some 5 MB. */
export const MAX_FEED_BYTES = 15 * 1024 * 1024;

// A packed byte may stand for a thousand, so that what comes out of one step is never much more than allowed.
const step = 16 * 1024;
/** fflate's code for bytes that do not begin as gzip does; the first ones do, so they follow a packed part. */
const noGzipHeader = 6;
/** Of the beginning, which has the mark and the declaration. */
const headBytes = 200;

/** A feed as text. */
export interface FeedText {
  pieces: AsyncGenerator<string>;
  /** Doubts about its letters so far, in sentences. */
  doubts: string[];
}

/**
 * The text of a feed, piece by piece: unpacked where it is packed by gzip, whatever its name, and decoded by its byte order
 * mark, by `contentType`, by its own declaration, or by its bytes. Its pieces throw the PermanentErrors `damaged_feed` and
 * `feed_too_large`.
 */
export function feedText(body: AsyncIterable<Uint8Array>, contentType: string): FeedText {
  const doubts: string[] = [];
  return { pieces: readPieces(body, contentType, doubts), doubts };
}

async function* readPieces(
  body: AsyncIterable<Uint8Array>,
  contentType: string,
  doubts: string[],
): AsyncGenerator<string> {
  const decoder = new FeedDecoder(contentType);
  let bytes = 0;
  for await (const piece of unpack(body)) {
    bytes += piece.length;
    if (bytes > MAX_FEED_BYTES) throw tooLarge();
    yield decoder.write(piece);
  }
  yield decoder.end();
  doubts.push(...decoder.doubts);
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
  let isOver = false;
  for await (const piece of atLeast(headBytes, body)) {
    if (gunzip === undefined && isGzip(piece)) {
      gunzip = new Gunzip();
      gunzip.ondata = (data) => unpacked.push(data);
    }
    if (!gunzip) {
      gunzip = null;
      yield piece;
      continue;
    }
    for (let at = 0; at < piece.length && !isOver; at += step) {
      try {
        gunzip.push(piece.subarray(at, at + step), false);
      } catch (error) {
        // Something else follows the packed part, such as padding: gzip's own tools pass over it.
        isOver = (error as { code?: unknown }).code === noGzipHeader;
        if (!isOver) throw damaged(messageOf(error));
      }
      yield* unpacked.splice(0);
    }
    if (isOver) return;
  }
}

function damaged(detail: string): PermanentError {
  return new PermanentError(
    'damaged_feed',
    'The feed is packed by gzip, but cannot be unpacked: open it in a browser, and tell the site’s owner.',
    undefined,
    detail,
  );
}

/** The same bytes; the first piece is long enough to tell what they are. */
async function* atLeast(length: number, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let head: Uint8Array | null = new Uint8Array();
  for await (const piece of body) {
    if (head === null) {
      yield piece;
      continue;
    }
    head = joined(head, piece);
    if (head.length < length) continue;
    yield head;
    head = null;
  }
  if (head !== null && head.length > 0) yield head;
}

function isGzip([first, second]: Uint8Array): boolean {
  return first === 0x1f && second === 0x8b;
}
