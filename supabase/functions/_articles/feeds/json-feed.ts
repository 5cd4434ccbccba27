import { z } from 'zod';
import { PermanentError } from '../../_millrace/mod.ts';
import { absoluteUrl, entryOf, type FeedEntry } from './feed-entry.ts';

const text = z.string().optional().catch(undefined);
const item = z.object({
  id: z
    .union([z.string(), z.number().transform(String)])
    .optional()
    .catch(undefined),
  url: text,
  external_url: text,
  title: text,
  date_published: text,
  date_modified: text,
  attachments: z
    .array(z.object({ url: text }))
    .optional()
    .catch(undefined),
});
const jsonFeed = z.object({
  version: z.string().regex(/jsonfeed\.org/),
  next_url: text,
  items: z.array(item.catch({})),
});

/** The items of a JSON feed, as read. It has the shape of a FeedReader that is at its end. */
export interface JsonItems {
  kind: 'json';
  items: number;
  unlinked: number;
  complete: true;
  /** The feed's next page; null for the last one. */
  next: string | null;
}

/**
 * Reads a JSON feed from the item `from` on, and hands each entry to `onEntry`, which says whether to go on. Throws a
 * PermanentError: `damaged_feed` where it is cut off or no JSON, `no_feed` for other JSON.
 */
export function readJsonFeed(
  content: string,
  address: string,
  from: number,
  onEntry: (entry: FeedEntry) => boolean,
): JsonItems {
  const feed = jsonFeed.safeParse(parsed(content));
  if (!feed.success) {
    throw new PermanentError(
      'no_feed',
      'The address gives JSON, no feed (RSS, Atom, RDF, JSON Feed) and no sitemap: enter the feed’s own address.',
    );
  }
  const next = absoluteUrl(feed.data.next_url ?? '', address);
  const read: JsonItems = { kind: 'json', items: 0, unlinked: 0, complete: true, next };
  for (const [index, one] of feed.data.items.entries()) {
    if (index < from) continue;
    read.items++;
    const { url, external_url, id, title, date_published, date_modified, attachments } = one;
    const texts = { link: url, href: external_url, id, title, published: date_published, updated: date_modified };
    const entry = entryOf({ ...texts, enclosure: attachments?.[0]?.url }, address);
    if (entry === null) read.unlinked++;
    else if (!onEntry({ ...entry, end: index + 1 })) break;
  }
  return read;
}

function parsed(content: string): unknown {
  try {
    return JSON.parse(content.replace(/^\ufeff/, ''));
  } catch {
    throw new PermanentError(
      'damaged_feed',
      'The feed is JSON that cannot be read, or breaks off: tell the site’s owner. It is read again with the next poll.',
    );
  }
}
