import { split } from 'llm-splitter';
import type { Section } from './sections.ts';
import { countTokens, MOST_BYTES, tokenPieces } from './tokens.ts';

// llm-splitter says where each piece lies and leaves nothing out, with any tokenizer and without dependencies. LangChain's
// splitters search for a piece by its text, which finds the wrong one of two that are equal, and cut characters in two.

/**
 * Estimated tokens of a chunk at most; the rest of a word at either end comes on top. By OpenAI's own count a chunk
 * has up to 700 in the languages where the estimate is lowest.
 */
export const CHUNK_TOKENS = 400;
/** How much of a chunk the next one of the same section begins with. */
export const OVERLAP_TOKENS = 50;
/** Sections that are shorter, in characters, go with the next one, whatever its size. */
const TINY_SECTION = 200;
/** Longer ones, in characters, are taken for a chunk of their own without counting their tokens. */
const SMALL_SECTION = 5 * CHUNK_TOKENS;
/** One section of so many begins a chunk by its own text, so that an edit moves the bounds of few others. */
const FIXED_BOUNDS = 8;
/** Longer paragraphs may be cut at the end of a line or a sentence, every LEAST_BLOCK characters or more. */
const WHOLE_PARAGRAPH = 1000;
const LEAST_BLOCK = 250;
/** More blanks than this in a row stand in no chunk. */
const LONG_GAP = /\s{256,}/g;
/** How far a chunk's end may be from the end of a word; not all scripts part words. */
const LONGEST_WORD = 32;
/**
 * Bytes of UTF-8 in a chunk at most. A token has at least one byte, so this also bounds the tokens of any model: half
 * of the input of the models that take least. A word and the blanks before it come on top, since their pieces differ
 * in size.
 */
export const MOST_CHUNK_BYTES = CHUNK_TOKENS * MOST_BYTES + 2 * 3 * (64 + LONGEST_WORD);

/** A piece of a text, in UTF-16 code units. */
export interface Place {
  start: number;
  end: number;
}

/**
 * Where the chunks of a text lie from `from` on, as far as `until`, in order; between them they hold all of it but blanks. `next`:
 * where the next part begins, null at the text's end.
 */
export function chunkPlaces(
  text: string,
  sections: readonly Section[],
  from: number,
  until: number,
): { places: Place[]; next: number | null } {
  const pieces = inOnePiece(text, sections, from, until);
  let next: number | null = null;
  if (until < text.length) {
    // The last piece may go on behind the bound, and is the next part's unless it fills this one.
    if (pieces.length > 1) pieces.pop();
    const last = pieces.at(-1);
    if (last && last.end > until) last.end = paragraphEnd(text, last.start, until);
    next = last && last.end < text.length ? last.end : null;
  }
  const places = pieces.flatMap((piece) => withoutGaps(text, piece));
  return { places: places.flatMap(({ start, end }) => placesIn(text, start, end)), next };
}

/** The parts that chunks do not cross: a section of level 1 to 3 with its deeper sections; small sections join their neighbours. */
function inOnePiece(text: string, sections: readonly Section[], from: number, until: number): Place[] {
  const whole: Place[] = [];
  for (const { start, end, level } of sections) {
    const last = whole.at(-1);
    if (last && level > 3) last.end = end;
    else whole.push({ start, end });
  }
  const pieces: (Place & { tokens: number })[] = [];
  for (const section of whole) {
    if (section.end <= from || section.start >= until) continue;
    const place = { start: Math.max(from, section.start), end: section.end };
    const { start, end } = place;
    const tokens = end - start <= SMALL_SECTION ? countTokens(text.slice(start, end)) : CHUNK_TOKENS;
    const last = pieces.at(-1);
    const fits = last && last.tokens + tokens <= CHUNK_TOKENS && !hasFixedBound(text, place);
    if (last && (fits || last.end - last.start < TINY_SECTION)) {
      last.end = end;
      last.tokens += tokens;
    } else pieces.push({ ...place, tokens });
  }
  return pieces;
}

/** The parts of a piece between gaps of many blanks, lest a chunk hold one. */
function withoutGaps(text: string, { start, end }: Place): Place[] {
  const gaps = [...text.slice(start, end).matchAll(LONG_GAP)];
  const starts = [start, ...gaps.map((gap) => start + gap.index + gap[0].length)];
  const ends = [...gaps.map((gap) => start + gap.index), end];
  return starts.map((from, index) => ({ start: from, end: ends[index] ?? end }));
}

/** Where a section that is larger than a part is cut: behind a paragraph, a line or a word in the part's last tenth. */
function paragraphEnd(text: string, start: number, until: number): number {
  const least = until - (until - start) / 10;
  for (const mark of ['\n\n', '\n', ' ']) {
    const end = text.lastIndexOf(mark, until - mark.length) + mark.length;
    if (end >= least) return end;
  }
  const isHalf = (text.charCodeAt(until) & 0xfc00) === 0xdc00;
  return isHalf ? until - 1 : until;
}

/** Chosen by the beginning of the text itself (FNV-1a), hence alike before and after an edit elsewhere. */
function hasFixedBound(text: string, { start, end }: Place): boolean {
  let hash = 0x811c9dc5;
  for (let at = start; at < Math.min(end, start + TINY_SECTION); at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return ((hash ^ (hash >>> 15)) >>> 0) % FIXED_BOUNDS === 0;
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
    // A piece no longer than the overlap, such as a heading before a long paragraph, is part of the next piece.
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
