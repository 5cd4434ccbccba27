import { readStructuredData } from './structured-data.ts';

/** The metadata of a page; null for a field without a value that can be used. */
export interface PageMetadata {
  /** Where the page wants to be found, absolute. */
  canonical_url: string | null;
  /** The picture that stands for the page, absolute. */
  image_url: string | null;
  author: string | null;
  /** A moment in UTC, as in 2026-03-01T09:30:00.000Z. */
  published_at: string | null;
  /** A language tag, such as en or pt-BR. */
  language: string | null;
}

/** A plain text says nothing of itself. */
export const noMetadata: PageMetadata = {
  canonical_url: null,
  image_url: null,
  author: null,
  published_at: null,
  language: null,
};

const longestName = 200;
const longestUrl = 2048;

/** Reads what a page says of itself in its head, its structured data and its text. `base` is what its links are relative to. */
export function readMetadata(document: Document, url: URL, base: URL): PageMetadata {
  const meta = readMeta(document);
  const data = readStructuredData(document);
  const link = (rel: string) => document.querySelector(`link[rel~="${rel}"]`)?.getAttribute('href');
  const time = document.querySelector('time[pubdate][datetime], article time[datetime]')?.getAttribute('datetime');
  const said = (...names: string[]) => names.map((name) => meta.get(name));
  return {
    canonical_url: first([link('canonical'), ...said('og:url')], (text) => readCanonical(text, url, base)),
    image_url: first(
      [...said('og:image:secure_url', 'og:image:url', 'og:image', 'twitter:image'), data.image, link('image_src')],
      (text) => readUrl(text, base),
    ),
    author: first([...said('author'), data.author, ...said('article:author', 'dc.creator', 'byl')], readName),
    published_at: first(
      [
        ...said('article:published_time'),
        data.published,
        ...said('date', 'dc.date', 'dc.date.issued', 'pubdate'),
        time,
      ],
      readMoment,
    ),
    language: first(
      [document.documentElement?.getAttribute('lang'), ...said('content-language', 'og:locale'), data.language],
      readLanguage,
    ),
  };
}

/** Returns the page's meta elements by name, lower case; the first of a name counts. */
function readMeta(document: Document): Map<string, string> {
  const meta = new Map<string, string>();
  for (const element of document.querySelectorAll('meta[content]')) {
    const name = ['property', 'name', 'itemprop', 'http-equiv'].map((key) => element.getAttribute(key)).find(Boolean);
    const key = name?.trim().toLowerCase();
    const content = element.getAttribute('content')?.trim();
    if (key && content && !meta.has(key)) meta.set(key, content);
  }
  return meta;
}

function first<T>(texts: (string | null | undefined)[], read: (text: string) => T | null): T | null {
  for (const text of texts) {
    const value = text ? read(text.trim()) : null;
    if (value !== null) return value;
  }
  return null;
}

function readUrl(text: string, base: URL): string | null {
  const url = text !== '' && URL.canParse(text, base) ? new URL(text, base) : null;
  const isUsable = url && /^https?:$/.test(url.protocol) && !url.username && !url.password;
  return isUsable && url.href.length <= longestUrl ? url.href : null;
}

/** Reads the canonical address. Some sites name their start page on every page, which would make all pages one. */
function readCanonical(text: string, url: URL, base: URL): string | null {
  const canonical = readUrl(text, base);
  if (canonical === null) return null;
  const { pathname, search } = new URL(canonical);
  const isStart = pathname === '/' && search === '';
  return isStart && (url.pathname !== '/' || url.search !== '') ? null : canonical;
}

/** Returns the name in a line that says who wrote a page; null where it is none, such as the address of a profile. */
export function readName(text: string): string | null {
  const name = text
    .replace(/\s+/g, ' ')
    .replace(/^by\s+/i, '')
    .trim();
  return name === '' || name.length > longestName || /^(https?:\/\/|www\.)/i.test(name) ? null : name;
}

function readMoment(text: string): string | null {
  // A day alone is taken for its beginning in UTC, as the standard says; a moment without a zone is the site's, which nobody knows.
  const hasTime = /\d{1,2}:\d{2}/.test(text);
  const hasZone = /(?:z|gmt|utc|[+-]\d{2}:?\d{2})\s*$/i.test(text);
  const moment = new Date(hasTime && !hasZone ? `${text}Z` : text);
  const year = moment.getUTCFullYear();
  return Number.isNaN(year) || year < 1 || year > 9999 ? null : moment.toISOString();
}

function readLanguage(text: string): string | null {
  try {
    return new Intl.Locale(text.split(',')[0]?.trim().replaceAll('_', '-') ?? '').toString();
  } catch {
    return null;
  }
}
