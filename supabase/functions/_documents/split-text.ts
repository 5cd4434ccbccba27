import { createHash } from 'node:crypto';
import { PermanentError } from '../_millrace/mod.ts';
import { chunkPlaces } from './chunk-places.ts';
import { type Section, sectionsOf } from './sections.ts';
import { countTokens } from './tokens.ts';

/**
 * Of one call, in UTF-8, what is not ASCII counted twice. A function has 2 s of CPU: for 790 KB of English, cut into 830 chunks,
 * documents-chunking takes 0.6 s in all, 0.13 s of it to load. Chinese of this size takes 0.35 s in all, and base64, of which a
 * word takes many tokens, 0.7 s.
 */
export const MAX_SIZE = 800_000;

/** A piece of a document's text: `text.slice(start_offset, end_offset)` of it, in UTF-16 code units. */
export interface Chunk {
  /** A uuid made of the document's id, the chunk's text, and how many equal ones came before it. */
  id: string;
  /** From 1. */
  ordinal: number;
  text: string;
  tokens: number;
  start_offset: number;
  end_offset: number;
  /** The Markdown headings that all of it stands under, as "A > B", or null. */
  heading: string | null;
  /** Where it begins, from 1; null where no form feed parts the text into pages. */
  page: number | null;
}

/** The facts about a text that hold before one of its parts is cut. */
export interface SplitFrom {
  /** Where the part begins. */
  at: number;
  /** The ids of all chunks before it. */
  ids: readonly string[];
}

/**
 * Cuts a text into chunks of about CHUNK_TOKENS, at headings, ends of paragraphs, and words. Between them they hold all of the
 * text but blanks. The same text gives the same chunks, and an edit leaves the ids of other sections' chunks alone.
 * Throws a PermanentError for a text that is blank, or larger than MAX_SIZE.
 */
export function splitText(documentId: string, text: string): Chunk[] {
  const { chunks, next } = splitPart(documentId, text);
  if (next === null) return chunks;
  throw new PermanentError(
    'text_too_long',
    `The text has about ${Math.ceil(sizeOf(text) / 1000)} KB, and one call can cut at most ${MAX_SIZE / 1000} KB into chunks ` +
      '(UTF-8, what is not ASCII counted twice): split the file and upload its parts as documents of their own.',
  );
}

/**
 * Cuts as much of a text as one call can, MAX_SIZE, as splitText does. `next`: where the next part begins, null at the text's
 * end. Parts end where sections do: the chunks are those of one cut, but where a single section is larger than a part.
 */
export function splitPart(
  documentId: string,
  text: string,
  from: SplitFrom = { at: 0, ids: [] },
): { chunks: Chunk[]; next: number | null } {
  const sections = sectionsOf(text);
  const { places, next } = chunkPlaces(text, sections, from.at, reachOf(text, from.at));
  if (places.length === 0 && from.ids.length === 0 && next === null)
    throw new PermanentError('no_text', 'The text is blank: there is nothing to cut into chunks.');
  const idOf = idsFor(documentId, from.ids);
  const pageAt = text.includes('\f') ? pagesOf(text) : () => null;
  const headingOf = headingsOf(sections);
  const chunks = places.map(({ start, end }, index) => {
    const slice = text.slice(start, end);
    return {
      id: idOf(slice),
      ordinal: from.ids.length + index + 1,
      text: slice,
      tokens: countTokens(slice),
      start_offset: start,
      end_offset: end,
      heading: headingOf(start, end),
      page: pageAt(start),
    };
  });
  return { chunks, next };
}

function sizeOf(text: string): number {
  let size = 0;
  for (let at = 0; at < text.length; at++) size += unitSize(text.charCodeAt(at));
  return size;
}

/** How far MAX_SIZE reaches. */
function reachOf(text: string, from: number): number {
  let size = 0;
  for (let at = from; at < text.length; at++) {
    size += unitSize(text.charCodeAt(at));
    if (size > MAX_SIZE) return at;
  }
  return text.length;
}

/** The size of a UTF-16 code unit, as MAX_SIZE counts it. */
function unitSize(unit: number): number {
  if (unit < 0x80) return 1;
  // Half of a character of four bytes.
  const isHalf = unit >= 0xd800 && unit < 0xe000;
  return unit < 0x800 || isHalf ? 4 : 6;
}

/** Makes ids: the same for the same text, and others for its repetitions, those among `before` included. */
function idsFor(documentId: string, before: readonly string[]): (text: string) => string {
  const taken = new Set(before);
  const seen = new Map<string, number>();
  return (text) => {
    let repeated = seen.get(text) ?? 0;
    let id = idOf(documentId, text, repeated);
    while (taken.has(id)) id = idOf(documentId, text, ++repeated);
    seen.set(text, repeated + 1);
    return id;
  };
}

function idOf(documentId: string, text: string, repeated: number): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([documentId, text, repeated]))
    .digest();
  // A uuid of version 8, whose other bits are its maker's.
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x80, 6);
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = hash.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
}

/** The number of the page at a place; places are asked for in order. */
function pagesOf(text: string): (at: number) => number {
  let page = 1;
  let next = text.indexOf('\f');
  return (at) => {
    while (next !== -1 && next < at) {
      page++;
      next = text.indexOf('\f', next + 1);
    }
    return page;
  };
}

/** The headings that all between two places stands under; a heading with nothing under it but others is no part of that. */
function headingsOf(sections: readonly Section[]): (start: number, end: number) => string | null {
  let first = 0;
  return (start, end) => {
    while ((sections[first]?.end ?? Infinity) <= start) first++;
    const touched: Section[] = [];
    for (let at = first; (sections[at]?.start ?? Infinity) < end; at++) touched.push(sections[at] as Section);
    const withBody = touched.filter((section) => section.hasBody);
    const paths = (withBody.length > 0 ? withBody : touched.slice(-1)).map((section) => section.path);
    return paths.reduce(commonStart, paths[0] ?? []).join(' > ') || null;
  };
}

function commonStart(one: string[], other: string[]): string[] {
  const differs = one.findIndex((title, depth) => title !== other[depth]);
  return differs === -1 ? one : one.slice(0, differs);
}
