import { excerpt, storableText } from '../../_millrace/mod.ts';

/** What an address turned out to be. */
export type FeedKind = 'rss' | 'rdf' | 'atom' | 'sitemap' | 'sitemap_index';

/** One article that a feed or a sitemap names, or one sitemap that an index names. */
export interface FeedEntry {
  /** Absolute, http or https. */
  url: string;
  title: string | null;
  /** When it was published or, in sitemaps, last changed: ISO 8601, null where it is not said or no date. */
  at: string | null;
  /** Where it ends in the feed's text, in UTF-16 code units: reading can go on there. */
  end: number;
}

const longestUrl = 2048;
const longestTitle = 500;
const earliest = Date.UTC(1970, 0);
const latest = Date.UTC(2100, 0);

/** What stands in an item, by the names of its elements. */
export type ItemTexts = Partial<Record<string, string>>;

/** The entry that an item's texts make, or null where it has no link that can be followed. */
export function entryOf(texts: ItemTexts, base: string): Omit<FeedEntry, 'end'> | null {
  // A guid is a link only where it is a whole one.
  const guid = /^\s*https?:/i.test(texts.guid ?? '') ? texts.guid : undefined;
  const link = [texts.link, texts.href, texts.loc, guid].find((text) => text?.trim());
  const url = link ? absoluteUrl(link, base) : null;
  if (url === null) return null;
  const title = (texts.title ?? texts['news:title'] ?? '').replace(/\s+/g, ' ').trim();
  const date =
    texts.pubDate ??
    texts['dc:date'] ??
    texts.published ??
    texts['news:publication_date'] ??
    texts.updated ??
    texts.lastmod;
  return { url, title: storableText(excerpt(title, longestTitle)) || null, at: isoDate(date) };
}

function absoluteUrl(link: string, base: string): string | null {
  const text = link.trim();
  if (text.length > longestUrl || !URL.canParse(text, base)) return null;
  const url = new URL(text, base);
  return /^https?:$/.test(url.protocol) && url.href.length <= longestUrl ? url.href : null;
}

function isoDate(text: string | undefined): string | null {
  const time = Date.parse(text?.trim() ?? '');
  return time >= earliest && time < latest ? new Date(time).toISOString() : null;
}
