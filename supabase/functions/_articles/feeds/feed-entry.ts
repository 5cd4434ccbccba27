import { excerpt, storableText } from '../../_millrace/mod.ts';
import { htmlLine, withoutEntities } from '../../_services/text/html-line.ts';

/** The format of the document at an address. */
export type FeedKind = 'rss' | 'rdf' | 'atom' | 'json' | 'sitemap' | 'sitemap_index';

/** One article that a feed or a sitemap names, or one sitemap that an index names. */
export interface FeedEntry {
  /** Absolute, http or https. */
  url: string;
  title: string | null;
  /** When it was published or, in sitemaps, last changed: ISO 8601, null where it is not said or no date. */
  at: string | null;
  /** Where reading can go on: where it ends in the feed's text, in UTF-16 code units; in a JSON feed how many came by then. */
  end: number;
}

const longestUrl = 2048;
const longestTitle = 500;
const earliest = Date.UTC(1970, 0);
const latest = Date.UTC(2100, 0);

/** The texts of an item by element name. */
export type ItemTexts = Partial<Record<string, string>>;

/** The entry that an item's texts make, or null where it has no link that can be followed. */
export function entryOf(texts: ItemTexts, base: string): Omit<FeedEntry, 'end'> | null {
  // A guid and an id are links only where they are whole ones. A podcast's item may have its recording alone.
  const [guid, id] = [texts.guid, texts.id].map((text) => (/^\s*https?:/i.test(text ?? '') ? text : undefined));
  const link = [texts.link, texts.href, texts.loc, guid, id, texts.enclosure].find((text) => text?.trim());
  const url = link ? absoluteUrl(link, base) : null;
  if (url === null) return null;
  const date =
    texts.pubDate ??
    texts['dc:date'] ??
    texts.published ??
    texts['news:publication_date'] ??
    texts.updated ??
    texts.lastmod;
  return { url, title: titleOf(texts), at: isoDate(date) };
}

/** A title on one line, without what is HTML in it; Atom says which it is, others write entities even where they need none. */
function titleOf(texts: ItemTexts): string | null {
  const text = texts.title ?? texts['news:title'] ?? '';
  const plain = texts['title type'] === 'html' ? htmlLine(text) : withoutEntities(text);
  return storableText(excerpt(plain.replace(/\s+/g, ' ').trim(), longestTitle)) || null;
}

/** The whole address of a link on the web; null for any other, and for none. */
export function absoluteUrl(link: string, base: string): string | null {
  const text = link.trim();
  if (text === '' || text.length > longestUrl || !URL.canParse(text, base)) return null;
  const url = new URL(text, base);
  return /^https?:$/.test(url.protocol) && url.href.length <= longestUrl ? url.href : null;
}

function isoDate(text: string | undefined): string | null {
  const time = Date.parse(text?.trim() ?? '');
  return time >= earliest && time < latest ? new Date(time).toISOString() : null;
}
