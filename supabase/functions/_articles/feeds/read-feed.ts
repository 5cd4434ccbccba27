import { PermanentError, type StageError } from '../../_millrace/errors.ts';
import { excerpt } from '../../_millrace/mod.ts';
import type { FeedEntry, FeedKind } from './feed-entry.ts';
import { FeedReader } from './feed-reader.ts';
import { feedText } from './feed-text.ts';
import type { FetchedFeed } from './fetch-feed.ts';
import { readJsonFeed } from './json-feed.ts';
import { LineReader } from './line-reader.ts';

/** Where no element has begun by then, none will. */
const longestPreface = 100_000;

/** The content of one feed or sitemap. */
export interface ReadFeed {
  kind: FeedKind;
  /** In its order, those that were skipped left out. */
  entries: FeedEntry[];
  /** Whether it was read to its end. */
  whole: boolean;
  /** The problem with a document whose entries can be used; null where there is none. */
  problem: StageError | null;
  /** The address of its next page; null where it names none. */
  next: string | null;
}

/** The result of a feed's reader: its items, how many of them have no link, and its next page. */
type Items = Pick<FeedReader, 'items' | 'unlinked' | 'complete' | 'next'>;

/**
 * Reads a feed or a sitemap as it arrives: at most `most` entries from the place `from` on, where an earlier entry ended. Throws
 * a PermanentError where it is none, cannot be unpacked, is too large or has no item with a link.
 */
export async function readFeed(feed: FetchedFeed, from: number, most: number): Promise<ReadFeed> {
  const entries: FeedEntry[] = [];
  let whole = true;
  const onEntry = (entry: FeedEntry) => {
    whole = entries.length < most;
    if (whole) entries.push(entry);
    return whole;
  };
  const { pieces, doubts } = feedText(feed.body, feed.contentType);
  const begun = await beginning(pieces);
  const text = joinedText(begun, pieces);
  const reader = await readAs(begun, feed.url, text, from, onEntry);
  const problem = problemOf(reader, whole) ?? doubtOf(doubts);
  // A fault of a part is no reason to give up the rest.
  if (problem?.code === 'no_links' && from === 0 && reader.unlinked === reader.items) throw problem;
  return { kind: reader.kind, entries, whole, problem, next: reader.next };
}

/** Reads a text by the kind that its first letter tells. */
async function readAs(
  begun: string,
  address: string,
  text: AsyncGenerator<string>,
  from: number,
  onEntry: (entry: FeedEntry) => boolean,
): Promise<Items & { kind: FeedKind }> {
  if (begun.trimStart().startsWith('{')) {
    let content = '';
    for await (const piece of text) content += piece;
    return readJsonFeed(content, address, from, onEntry);
  }
  if (/^\s*https?:\/\//i.test(begun)) {
    const reader = new LineReader(address, onEntry, from);
    await readPieces(reader, text);
    return reader;
  }
  const reader = from > 0 ? await goOn(address, text, from, onEntry) : new FeedReader(address, onEntry);
  const length = await readPieces(reader, text);
  if (reader.kind === null) throw noFeed(reader, length);
  return reader as FeedReader & { kind: FeedKind };
}

/** Hands the pieces on until the reader has enough; resolves to how many code units it took. */
async function readPieces(reader: FeedReader | LineReader, text: AsyncGenerator<string>): Promise<number> {
  let length = 0;
  for await (const piece of text) {
    reader.write(piece);
    length += piece.length;
    if (reader.ended || (reader instanceof FeedReader && reader.root === null && length > longestPreface)) break;
  }
  reader.end();
  return length;
}

/** The first pieces, until they tell by a few letters what the text is. */
async function beginning(text: AsyncGenerator<string>): Promise<string> {
  let begun = '';
  while (begun.trimStart().length < 8 && begun.length < longestPreface) {
    const { value, done } = await text.next();
    if (done) break;
    begun += value;
  }
  return begun;
}

async function* joinedText(begun: string, rest: AsyncGenerator<string>): AsyncGenerator<string> {
  try {
    if (begun !== '') yield begun;
    yield* rest;
  } finally {
    // Ends the transfer, where no more is read than the beginning.
    await rest.return(undefined);
  }
}

/**
 * Goes on at a place in the text: the reader gets what stands before the first item, and then what comes after the place.
 * Takes the text up to there; to parse it all would cost most of a worker's time. Without an item it reads on as usual.
 */
async function goOn(
  address: string,
  text: AsyncGenerator<string>,
  from: number,
  onEntry: (entry: FeedEntry) => boolean,
): Promise<FeedReader> {
  const scout = new FeedReader(address, () => false);
  let begun = '';
  while (scout.firstItem === null && !scout.ended && begun.length < from) {
    const { value, done } = await text.next();
    if (done) break;
    begun += value;
    scout.write(value);
  }
  const head = begun.slice(0, scout.firstItem ?? from);
  let length = begun.length;
  let last = begun;
  while (length < from) {
    const { value, done } = await text.next();
    if (done) break;
    length += value.length;
    last = value;
  }
  const reader = new FeedReader(address, onEntry, from - head.length);
  reader.write(head);
  if (length > from) reader.write(last.slice(last.length - (length - from)));
  return reader;
}

function noFeed({ root, named }: FeedReader, length: number): PermanentError {
  const [first] = named;
  if (first) {
    return new PermanentError(
      'no_feed',
      `The address gives a web page, no feed. The page names its feed: enter ${first}.`,
    );
  }
  const found = root ? `<${excerpt(root, 40)}>` : length === 0 ? 'nothing' : 'no XML';
  const what = root && /^(html|head|body|meta|div)$/i.test(root) ? 'a web page' : found;
  return new PermanentError(
    'no_feed',
    `The address gives ${what}, no feed (RSS, Atom, RDF, JSON Feed) and no sitemap: enter the feed’s own address.`,
  );
}

/** Doubts about the feed's letters, as a problem that stays until the feed changes; null where there are none. */
function doubtOf(doubts: string[]): StageError | null {
  if (doubts.length === 0) return null;
  return new PermanentError(
    'charset_guessed',
    `${doubts.join(' ')} Titles may be wrong: tell the site’s owner to declare it.`,
  );
}

function problemOf({ items, unlinked, complete }: Items, whole: boolean): StageError | null {
  if (items > 0 && unlinked === items) {
    return new PermanentError('no_links', `None of its ${items} items has a link: tell the site’s owner.`);
  }
  if (whole && !complete) {
    return new PermanentError(
      'feed_cut_off',
      `The feed breaks off after ${items} ${items === 1 ? 'item' : 'items'}. What came before is taken, and it is read again with ` +
        'the next poll; if this stays, tell the site’s owner.',
    );
  }
  if (unlinked === 0) return null;
  const left = unlinked === 1 ? 'has no link and was left out' : 'have no link and were left out';
  return new PermanentError('no_links', `${unlinked} of its ${items} items ${left}.`);
}
