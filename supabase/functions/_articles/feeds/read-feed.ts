import { PermanentError, type StageError } from '../../_millrace/errors.ts';
import { excerpt } from '../../_millrace/mod.ts';
import type { FeedEntry, FeedKind } from './feed-entry.ts';
import { FeedReader } from './feed-reader.ts';
import { feedText } from './feed-text.ts';
import type { FetchedFeed } from './fetch-feed.ts';

/** Where no element has begun by then, none will. */
const longestPreface = 100_000;

/** What one feed or sitemap gave. */
export interface ReadFeed {
  kind: FeedKind;
  /** In its order, those that were skipped left out. */
  entries: FeedEntry[];
  /** Whether it was read to its end. */
  whole: boolean;
  /** What is wrong with it, though its entries can be used. */
  problem: StageError | null;
}

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
  const text = feedText(feed.body, feed.contentType);
  const reader = from > 0 ? await goOn(feed.url, text, from, onEntry) : new FeedReader(feed.url, onEntry);
  let length = 0;
  for await (const piece of text) {
    reader.write(piece);
    length += piece.length;
    if (reader.ended || (reader.root === null && length > longestPreface)) break;
  }
  reader.end();
  if (reader.kind === null) throw noFeed(reader, length);
  const problem = problemOf(reader, whole);
  // What is wrong with a part is no reason to give up the rest.
  if (problem?.code === 'no_links' && from === 0 && reader.unlinked === reader.items) throw problem;
  return { kind: reader.kind, entries, whole, problem };
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
    `The address gives ${what}, no feed (RSS, Atom, RDF) and no sitemap: enter the feed’s own address.`,
  );
}

function problemOf({ items, unlinked, complete }: FeedReader, whole: boolean): StageError | null {
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
