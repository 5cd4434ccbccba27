import { Parser } from 'htmlparser2';
import { PermanentError } from '../../_millrace/mod.ts';
import { absoluteUrl, entryOf, type FeedEntry, type FeedKind, type ItemTexts } from './feed-entry.ts';

// The parser's work grows with the depth. No feed comes near.
const deepest = 100;
const longestText = 4096;
/** The kinds that are XML. */
type XmlKind = Exclude<FeedKind, 'json'>;
const roots: Record<string, XmlKind> = {
  rss: 'rss',
  RDF: 'rdf',
  feed: 'atom',
  urlset: 'sitemap',
  sitemapindex: 'sitemap_index',
};
const items: Record<XmlKind, string> = {
  rss: 'item',
  rdf: 'item',
  atom: 'entry',
  sitemap: 'url',
  sitemap_index: 'sitemap',
};
const read = new Set(
  'title link guid id pubDate dc:date published updated loc lastmod news:title news:publication_date'.split(' '),
);
const pageElements = new Set('html head body meta title script style div p table'.split(' '));

/**
 * Reads a feed or a sitemap piece by piece, and hands each entry to `onEntry`, which says whether to go on. It keeps no tree,
 * so that the size of a feed costs no memory.
 */
export class FeedReader {
  /** Known once the outermost element has opened. */
  kind: XmlKind | null = null;
  /** The name of the outermost element; null while there is none. */
  root: string | null = null;
  /** How many items have closed, those without a link included. */
  items = 0;
  /** How many of them have no link that can be followed. */
  unlinked = 0;
  /** Whether the outermost element has closed by itself. */
  complete = false;
  /** The feeds that a web page names, where the address gives one. */
  readonly named: string[] = [];
  /** Whether nothing more need be read. */
  ended = false;
  /** The feed's next page (RFC 5005); null where it names none. */
  next: string | null = null;
  /** Where the first item begins in the text; null while there is none. */
  firstItem: number | null = null;
  readonly #onEntry: (entry: FeedEntry) => boolean;
  readonly #parser: Parser;
  readonly #bases: string[] = [];
  /** The prefix of the outermost element's name, such as `ns:`. */
  #prefix = '';
  #depth = 0;
  /** The depth of the open item, 0 outside of items. */
  #itemDepth = 0;
  #texts: ItemTexts = {};
  /** The element of the item whose text is being read. */
  #reading: string | null = null;

  /** Of the text's beginning so many code units were left out after the first item's place. */
  readonly #leftOut: number;

  constructor(address: string, onEntry: (entry: FeedEntry) => boolean, leftOut = 0) {
    this.#bases.push(address);
    this.#leftOut = leftOut;
    this.#onEntry = onEntry;
    this.#parser = new Parser(
      {
        onopentag: (name, attributes) => this.#open(name, attributes),
        ontext: (text) => this.#text(text),
        onclosetag: (name, isImplied) => this.#close(name, isImplied),
      },
      { xmlMode: true },
    );
  }

  /** Takes the next piece of the text. Throws a PermanentError where it is too tangled. */
  write(text: string): void {
    if (!this.ended) this.#parser.write(text);
  }

  /** Says that the text is over. */
  end(): void {
    if (!this.ended) this.#parser.end();
  }

  #open(full: string, attributes: Record<string, string>): void {
    if (this.ended) return;
    if (++this.#depth > deepest) {
      throw new PermanentError('damaged_feed', 'The feed’s elements are nested too deeply: tell the site’s owner.');
    }
    const base = attributes['xml:base'];
    const inherited = this.#bases.at(-1) as string;
    this.#bases.push(base !== undefined && URL.canParse(base, inherited) ? new URL(base, inherited).href : inherited);
    if (this.root === null) this.#openRoot(full);
    if (this.kind === null) this.#openOfPage(full.toLowerCase(), attributes);
    else if (this.#itemDepth === 0) this.#openOutside(this.#local(full), attributes);
    else if (this.#depth === this.#itemDepth + 1 || full.startsWith('news:')) this.#openField(full, attributes);
  }

  #openRoot(full: string): void {
    this.root = full;
    const colon = full.indexOf(':') + 1;
    this.kind = roots[full.slice(colon)] ?? null;
    // In RDF only the outermost element has the prefix.
    if (this.kind !== null && this.kind !== 'rdf') this.#prefix = full.slice(0, colon);
    if (this.kind === null && !pageElements.has(full.toLowerCase())) this.#stop();
  }

  /** A page names its feeds in its head. */
  #openOfPage(name: string, { rel = '', type = '', href = '' }: Record<string, string>): void {
    if (name === 'body' || this.#depth > deepest / 2) this.#stop();
    if (name !== 'link' || !/\balternate\b/i.test(rel) || !/\b(rss|atom|rdf)\b/i.test(type)) return;
    const base = this.#bases.at(-1);
    if (href && URL.canParse(href, base)) this.named.push(new URL(href, base).href);
  }

  #openOutside(name: string, { rel = '', href = '' }: Record<string, string>): void {
    if (/(?:^|:)link$/.test(name) && rel.toLowerCase() === 'next') {
      this.next ??= absoluteUrl(href, this.#bases.at(-1) as string);
    }
    if (this.kind === null || name !== items[this.kind]) return;
    this.#itemDepth = this.#depth;
    this.#texts = {};
    this.firstItem ??= this.#parser.startIndex;
  }

  #openField(full: string, attributes: Record<string, string>): void {
    const { href, rel = 'alternate', isPermaLink, type = '' } = attributes;
    const name = full === 'atom:link' ? 'link' : this.#local(full);
    if (name === 'enclosure') this.#texts.enclosure ??= attributes.url;
    if (name === 'link' && href !== undefined) {
      // Others lead to comments and to the feed itself.
      if (rel === 'alternate') this.#texts.href ??= href;
      if (rel === 'enclosure') this.#texts.enclosure ??= href;
      return;
    }
    if (!read.has(name) || this.#texts[name] !== undefined) return;
    if (name === 'guid' && isPermaLink === 'false') return;
    this.#texts[name] = '';
    if (name === 'title') this.#texts['title type'] = type.toLowerCase();
    this.#reading = name;
  }

  #text(text: string): void {
    if (this.#reading === null) return;
    const before = this.#texts[this.#reading] ?? '';
    if (before.length < longestText) this.#texts[this.#reading] = before + text;
  }

  #close(full: string, isImplied: boolean): void {
    if (this.ended) return;
    const base = this.#bases.pop() as string;
    const depth = this.#depth--;
    if (depth === 1) this.complete = this.kind !== null && !isImplied;
    if (this.#itemDepth === 0) return;
    if (this.#reading === this.#local(full)) this.#reading = null;
    if (depth === this.#itemDepth) this.#closeItem(base, isImplied);
  }

  #closeItem(base: string, isImplied: boolean): void {
    this.#itemDepth = 0;
    this.#reading = null;
    // An item that the end of the text cut off may have half a link.
    if (isImplied) return;
    this.items++;
    const entry = entryOf(this.#texts, base);
    if (entry === null) this.unlinked++;
    else if (!this.#onEntry({ ...entry, end: this.#parser.endIndex + 1 + this.#leftOut })) this.#stop();
  }

  #stop(): void {
    this.ended = true;
    this.#parser.pause();
  }

  #local(full: string): string {
    return this.#prefix && full.startsWith(this.#prefix) ? full.slice(this.#prefix.length) : full;
  }
}
