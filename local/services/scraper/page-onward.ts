import { Parser } from 'htmlparser2';
import type { Fetched } from '../http/fetch-url.ts';
import { decodePage, isHtml } from './decode-page.ts';

/** Where a page sends its reader instead of showing a text. */
export interface PageOnward {
  /** The address against which the others are read; null for the page's own. */
  base: string | null;
  /** The address of a refresh that comes within seconds; null without one. */
  refresh: string | null;
  canonical: string | null;
  /** The addresses of a frameset's frames, in their order. */
  frames: string[];
  /** Of the frameset's page. */
  title: string;
  /** Whether the page shows anything but its title. */
  hasText: boolean;
}

/** A page that is shown for longer is one to read. */
const longestRefreshSeconds = 10;
const mostFrames = 12;
/** How many bytes of a page are read to find out whether it leads on. */
const probe = 100_000;
const unseen = new Set(['script', 'style', 'noscript', 'template', 'noframes', 'title', 'head']);

/** Reads whether an HTML page, or its beginning, leads on: by a refresh, a frameset, or a canonical address beside no text. */
export function readOnward(html: string): PageOnward {
  const page: PageOnward = { base: null, refresh: null, canonical: null, frames: [], title: '', hasText: false };
  const open: string[] = [];
  const parser = new Parser({
    onopentag(name, attributes) {
      const isHidden = open.some((element) => element === 'noscript' || element === 'template');
      open.push(name);
      if (isHidden) return;
      if (name === 'base') page.base ??= attributes.href ?? null;
      if (name === 'meta') page.refresh ??= refreshOf(attributes);
      if (name === 'link' && /\bcanonical\b/i.test(attributes.rel ?? '')) page.canonical ??= attributes.href ?? null;
      if (name === 'frame' && attributes.src && page.frames.length < mostFrames) page.frames.push(attributes.src);
      if (name === 'img' || name === 'video' || name === 'iframe') page.hasText = true;
    },
    ontext(text) {
      if (open.at(-1) === 'title') page.title += text;
      else if (!page.hasText && /[\p{L}\p{N}]/u.test(text)) page.hasText = !open.some((name) => unseen.has(name));
    },
    onclosetag() {
      open.pop();
    },
  });
  parser.write(html);
  parser.end();
  return page;
}

/** The page to which this one leads on by a refresh, or by the canonical address of a page without text; null where it does not. */
export function leadsTo({ url, contentType, body }: Fetched): URL | null {
  if (!isHtml(contentType)) return null;
  const html = decodePage(body.subarray(0, probe), contentType).text;
  if (!/http-equiv|canonical/i.test(html)) return null;
  const page = readOnward(html);
  const target = page.refresh ?? (page.hasText || page.frames.length > 0 ? null : page.canonical);
  const base = baseOf(page, url);
  const next = target !== null && URL.canParse(target, base) ? new URL(target, base) : null;
  if (!next || !/^https?:$/.test(next.protocol)) return null;
  next.hash = '';
  return next.href === url.href ? null : next;
}

/** Returns the address against which a page's relative addresses are read. */
export function baseOf({ base }: PageOnward, url: URL): URL {
  return base !== null && URL.canParse(base, url) ? new URL(base, url) : url;
}

/** Returns the address in `5; url=/next`; null where the page is shown for longer, or only loads itself anew. */
function refreshOf(attributes: Record<string, string>): string | null {
  if (attributes['http-equiv']?.trim().toLowerCase() !== 'refresh') return null;
  const parts = /^\s*(\d+(?=\D)|(?=\.))(?:\.\d*)?[;,\s]\s*(?:url\s*=\s*)?(["']?)(.+?)\2\s*$/i.exec(
    attributes.content ?? '',
  );
  return parts?.[3] && Number(parts[1]) <= longestRefreshSeconds ? parts[3] : null;
}
