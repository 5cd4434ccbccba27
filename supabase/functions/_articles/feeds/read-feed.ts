import { PermanentError, type StageError } from '../../_millrace/errors.ts';
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
 * Reads a feed or a sitemap as it arrives: at most `most` entries after the first `skipped`. Throws a PermanentError where it
 * is none, cannot be unpacked, is too large or has no item with a link.
 */
export async function readFeed(feed: FetchedFeed, skipped: number, most: number): Promise<ReadFeed> {
  const entries: FeedEntry[] = [];
  let passed = 0;
  let whole = true;
  const reader = new FeedReader(feed.url, (entry) => {
    if (passed++ < skipped) return true;
    whole = entries.length < most;
    if (whole) entries.push(entry);
    return whole;
  });
  let length = 0;
  for await (const text of feedText(feed.body, feed.contentType)) {
    reader.write(text);
    length += text.length;
    if (reader.ended || (reader.root === null && length > longestPreface)) break;
  }
  reader.end();
  if (reader.kind === null) throw noFeed(reader, length);
  return { kind: reader.kind, entries, whole, problem: problemOf(reader, whole) };
}

function noFeed({ root, named }: FeedReader, length: number): PermanentError {
  const [first] = named;
  if (first) {
    return new PermanentError(
      'no_feed',
      `The address gives a web page, no feed. The page names its feed: enter ${first}.`,
    );
  }
  const found = root ? `<${root.slice(0, 40)}>` : length === 0 ? 'nothing' : 'no XML';
  const what = root && /^(html|head|body|meta|div)$/i.test(root) ? 'a web page' : found;
  return new PermanentError(
    'no_feed',
    `The address gives ${what}, no feed (RSS, Atom, RDF) and no sitemap: enter the feed’s own address.`,
  );
}

function problemOf({ items, unlinked, complete }: FeedReader, whole: boolean): StageError | null {
  if (items > 0 && unlinked === items) {
    throw new PermanentError('no_links', `None of its ${items} items has a link: tell the site’s owner.`);
  }
  if (whole && !complete) {
    return new PermanentError(
      'feed_cut_off',
      `The feed breaks off after ${items} items, which are taken. It is read again with the next poll; if this stays, tell the ` +
        'site’s owner.',
    );
  }
  if (unlinked === 0) return null;
  const left = unlinked === 1 ? 'has no link and was left out' : 'have no link and were left out';
  return new PermanentError('no_links', `${unlinked} of its ${items} items ${left}.`);
}
