import { createHash } from 'node:crypto';
import { split } from 'llm-splitter';
import { PermanentError } from '../_shared/errors.ts';
import { type Section, sectionsOf } from './sections.ts';
import { countTokens, tokenPieces } from './tokens.ts';

/** What a chunk holds at most, but for the rest of a word at either end. */
export const CHUNK_TOKENS = 400;
/** How much of a chunk the next one of the same section begins with. */
export const OVERLAP_TOKENS = 50;
/**
 * Of UTF-8, what is not ASCII counted twice. A function has 2 s of CPU: for 790 KB of English, cut into a thousand chunks,
 * documents-chunking takes 0.9 to 1.15 s in all, 0.4 s of it to load. Chinese of this size takes 0.9 s to cut, and base64,
 * of which a word takes many tokens, 1.6 s.
 */
export const MAX_SIZE = 800_000;
/** Sections that are shorter, in characters, go with the next one. */
const TINY_SECTION = 200;
/** Longer paragraphs may be cut at the end of a line or a sentence, every LEAST_BLOCK characters or more. */
const WHOLE_PARAGRAPH = 1000;
const LEAST_BLOCK = 250;
/** More blanks than this in a row stand in no chunk. */
const LONG_GAP = /\s{256,}/g;
/** How far a chunk's end may be from the end of a word; not all scripts part words. */
const LONGEST_WORD = 32;

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

/**
 * Cuts a text into chunks of about CHUNK_TOKENS, at headings, ends of paragraphs, and words. Between them they hold all of the
 * text but blanks. The same text gives the same chunks, and an edit leaves the ids of other sections' chunks alone.
 * Throws a PermanentError for a text that is blank, or larger than MAX_SIZE.
 */
export function splitText(documentId: string, text: string): Chunk[] {
  const size = 2 * new TextEncoder().encode(text).length - text.replace(/[^\0-\x7f]+/g, '').length;
  if (size > MAX_SIZE) {
    throw new PermanentError(
      'text_too_long',
      `The text's size is ${size}, and one function can cut at most ${MAX_SIZE} into chunks (bytes of UTF-8, what is not ` +
        'ASCII counted twice): split the file and upload its parts as documents of their own.',
    );
  }
  const sections = sectionsOf(text);
  const places = inOnePiece(text, sections).flatMap(({ start, end }) => placesIn(text, start, end));
  if (places.length === 0)
    throw new PermanentError('no_text', 'The text is blank: there is nothing to cut into chunks.');
  const idOf = idsFor(documentId);
  const pageAt = text.includes('\f') ? pagesOf(text) : () => null;
  const headingOf = headingsOf(sections);
  return places.map(({ start, end }, index) => {
    const slice = text.slice(start, end);
    return {
      id: idOf(slice),
      ordinal: index + 1,
      text: slice,
      tokens: countTokens(slice),
      start_offset: start,
      end_offset: end,
      heading: headingOf(start, end),
      page: pageAt(start),
    };
  });
}

interface Place {
  start: number;
  end: number;
}

/**
 * What chunks do not cross: a section of level 1 to 3 with those deeper in it; a tiny one together with the next. A gap of
 * many blanks parts them too, lest a chunk hold it.
 */
function inOnePiece(text: string, sections: readonly Section[]): Place[] {
  const pieces: Place[] = [];
  for (const { start, end, level } of sections) {
    const last = pieces.at(-1);
    if (last && (level > 3 || last.end - last.start < TINY_SECTION)) last.end = end;
    else pieces.push({ start, end });
  }
  return pieces.flatMap(({ start, end }) => {
    const gaps = [...text.slice(start, end).matchAll(LONG_GAP)];
    const starts = [start, ...gaps.map((gap) => start + gap.index + gap[0].length)];
    const ends = [...gaps.map((gap) => start + gap.index), end];
    return starts.map((from, index) => ({ start: from, end: ends[index] ?? end }));
  });
}

/** The chunks of one piece of the text, from word to word, without blanks around them. */
function placesIn(text: string, from: number, to: number): Place[] {
  const parts = split(blocksOf(text.slice(from, to)), {
    chunkSize: CHUNK_TOKENS,
    chunkOverlap: OVERLAP_TOKENS,
    chunkStrategy: 'paragraph',
    splitter: tokenPieces,
  });
  const places: Place[] = [];
  for (const part of parts) {
    let start = wordStart(text, from + part.start, from);
    let end = wordEnd(text, from + part.end, to);
    while (start < end && isBlank(text, start)) start++;
    while (start < end && isBlank(text, end - 1)) end--;
    const last = places.at(-1);
    // One that is no longer than the overlap, such as a heading before a long paragraph, is part of the next.
    if (last && start <= last.start) places.pop();
    if (start < end && end > (places.at(-1)?.end ?? from)) places.push({ start, end });
  }
  return places;
}

const block = new RegExp(`[^]{${LEAST_BLOCK},}?(?:\\n|\\s(?<=[.!?…]["'’”)\\]]{0,3}\\s)|(?<=[。！？]))|[^]+$`, 'g');

/**
 * The text in parts at whose ends the splitter may cut: paragraphs, and lines or sentences of long ones. It finds the
 * paragraphs in a part by itself, and takes longer the more parts there are.
 */
function blocksOf(text: string): string[] {
  const blocks: string[] = [];
  let whole = '';
  for (const paragraph of text.split(/(?<=\n\n)/)) {
    if (paragraph.length <= WHOLE_PARAGRAPH) {
      whole += paragraph;
    } else {
      if (whole) blocks.push(whole);
      whole = '';
      blocks.push(...(paragraph.match(block) ?? []));
    }
  }
  return whole ? [...blocks, whole] : blocks;
}

function isBlank(text: string, at: number): boolean {
  return /\s/.test(text.charAt(at));
}

const insideWord = /^[\p{L}\p{N}\p{M}]{2}$/u;

/** Whether a word goes on from before `at`. Characters outside the basic plane count as words of their own. */
function isInsideWord(text: string, at: number): boolean {
  return insideWord.test(text.slice(at - 1, at + 1));
}

function wordStart(text: string, at: number, least: number): number {
  for (let start = at; start > least && start > at - LONGEST_WORD; start--) {
    if (!isInsideWord(text, start)) return start;
  }
  return at - LONGEST_WORD < least ? least : at;
}

function wordEnd(text: string, at: number, most: number): number {
  for (let end = at; end < most && end < at + LONGEST_WORD; end++) {
    if (!isInsideWord(text, end)) return end;
  }
  return at + LONGEST_WORD > most ? most : at;
}

/** Makes ids: the same for the same text, and others for its repetitions. */
function idsFor(documentId: string): (text: string) => string {
  const seen = new Map<string, number>();
  return (text) => {
    const before = seen.get(text) ?? 0;
    seen.set(text, before + 1);
    const hash = createHash('sha256')
      .update(JSON.stringify([documentId, text, before]))
      .digest();
    // A uuid of version 8, whose other bits are its maker's.
    hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x80, 6);
    hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8);
    const hex = hash.toString('hex');
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
  };
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
