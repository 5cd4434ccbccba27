import { Parser } from 'htmlparser2';
import { excerpt, storableText } from '../_millrace/errors.ts';
import { parseJsonLd } from './parse-json-ld.ts';

/** The machine-readable parts of a page. */
export interface PageParts {
  json_ld: unknown[];
  /** How many of its scripts of JSON-LD could not be read. */
  broken: number;
  open_graph: Record<string, string>;
  meta: Record<string, string>;
  title: string;
  language: string | null;
}

const mostScripts = 20;
const mostScriptBytes = 500_000;
const mostTags = 100;
const longestTag = 4_000;

/** Reads a page's JSON-LD, OpenGraph, meta tags and title. */
export function readPageParts(html: string): PageParts {
  const parts: PageParts = { json_ld: [], broken: 0, open_graph: {}, meta: {}, title: '', language: null };
  let taken: 'json_ld' | 'title' | null = null;
  let text = '';
  let scripts = 0;
  const parser = new Parser({
    onopentag(name, attributes) {
      if (name === 'html') parts.language = excerpt(attributes.lang?.trim().toLowerCase() ?? '', 20) || null;
      if (name === 'meta') addTag(parts, attributes);
      if (name === 'title' && parts.title === '') taken = 'title';
      const isData = name === 'script' && /^\s*application\/ld\+json\b/i.test(attributes.type ?? '');
      if (isData && ++scripts <= mostScripts) taken = 'json_ld';
      text = '';
    },
    ontext(piece) {
      if (taken && text.length <= mostScriptBytes) text += piece;
    },
    onclosetag(name) {
      if (taken === 'title' && name === 'title') parts.title = line(text);
      if (taken === 'json_ld' && name === 'script') addData(parts, text);
      if (name === 'title' || name === 'script') taken = null;
    },
  });
  parser.write(html);
  parser.end();
  return parts;
}

function addTag(parts: PageParts, { property, name, content }: Record<string, string>): void {
  const key = (property ?? name ?? '').trim().toLowerCase();
  if (key === '' || content === undefined) return;
  const tags = /^(?:og|article|profile):/.test(key) ? parts.open_graph : parts.meta;
  if (Object.keys(tags).length < mostTags && !Object.hasOwn(tags, key) && key.length <= 100) {
    tags[storableText(key)] = line(content);
  }
}

function addData(parts: PageParts, text: string): void {
  const value = text.length > mostScriptBytes ? undefined : parseJsonLd(text);
  if (value === undefined) parts.broken++;
  else parts.json_ld.push(value);
}

function line(text: string): string {
  return excerpt(text.replace(/\s+/g, ' ').trim(), longestTag);
}
