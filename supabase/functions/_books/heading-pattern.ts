import type { FoundHeading } from '../_pipelines/books-results.ts';
import { headingFinder, partsOf } from './page-parts.ts';
import type { PageRow } from './page-rows.ts';
import { titleKey } from './titles.ts';

interface Candidate {
  page: number;
  text: string;
  /** Size of its letters relative to the page's usual ones; null where it is unknown. */
  scale: number | null;
  /** Whether its letters are as large as a chapter's. */
  large: boolean;
  /** Number of its first line, from 0. */
  line: number;
}

const mostHeadings = 5000;
// A title at the top of more pages than this is a running head.
const mostRepetitions = 2;
const chapterWord = /^(?:chapter|part|book)\s+\S+/i;
/** A heading's letters are so much larger than the text's, where sizes are exact. */
const larger = 1.06;
const largeLetters = 1.35;
// In a picture a line's height depends on its letters: a title without descenders measures small.
const largeOnImage = 1.22;

/**
 * Finds the headings of a book in what was labelled page by page. It leaves out what does not stand on its page, and running
 * heads that were taken for headings. It tells chapters from sections by what their headings have in common.
 */
export function findHeadings(pages: readonly PageRow[]): FoundHeading[] {
  const usual = usualSize(pages);
  const candidates = pages.flatMap((page) => candidatesOf(page, usual));
  const heads = new Map<string, number>();
  for (const { label_result: label } of pages) count(heads, label?.running_head);
  const repeated = new Map<string, number>();
  for (const { text } of candidates) count(repeated, text);
  const isHead = ({ text, line, large }: Candidate) => {
    const seen = (repeated.get(titleKey(text)) ?? 0) + (heads.get(titleKey(text)) ?? 0);
    return line <= 1 && !large && !chapterWord.test(text) && seen > mostRepetitions;
  };
  const kept = firstOfEach(candidates.filter((candidate) => !isHead(candidate)));
  const chaptered = kept.some(({ text, large }) => large || chapterWord.test(text));
  return kept.slice(0, mostHeadings).map((candidate) => ({
    page: candidate.page,
    level: !chaptered || isChapter(candidate) ? 1 : 2,
    text: candidate.text,
    scale: candidate.scale === null ? null : Math.round(candidate.scale * 10) / 10,
  }));
}

/** The size of most letters of a book that was read by its letters; 0 where that says nothing. */
function usualSize(pages: readonly PageRow[]): number {
  const weights = new Map<number, number>();
  for (const { blend_result: blend } of pages) {
    if (blend?.readings[0] === 'ocr') continue;
    for (const { size, text } of blend?.lines ?? []) {
      if (size !== null) weights.set(size, (weights.get(size) ?? 0) + text.length);
    }
  }
  return [...weights].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
}

function candidatesOf(
  { number: page, blend_result: blend, label_result: label }: PageRow,
  ofBook: number,
): Candidate[] {
  if (!blend || !label) return [];
  const lines = blend.lines.map(({ text }) => text);
  const onImage = blend.readings[0] === 'ocr';
  // On a page of small print, such as code, the book's own letters are no heading.
  const ofPage = middle(blend.lines.flatMap(({ size }) => size ?? []));
  const usual = onImage ? ofPage : Math.max(ofPage, ofBook);
  const find = headingFinder(lines);
  const { footnotes } = partsOf(blend, label);
  const found = label.headings.flatMap((text): Candidate[] => {
    const title = text.replace(chapterWord, '').replace(/^\s*–\s*/, '');
    const place = find(text) ?? find(title);
    if (!place) return [];
    const sizes = blend.lines.slice(place.line, place.line + place.count).flatMap(({ size }) => size ?? []);
    const scale = sizes.length > 0 && usual > 0 ? Math.max(...sizes) / usual : null;
    if (scale !== null && !onImage && scale < larger) return [];
    const large = scale !== null && scale >= (onImage ? largeOnImage : largeLetters);
    return [{ page, text: withoutMark(text, footnotes), scale, large, line: place.line }];
  });
  return found.sort((a, b) => a.line - b.line);
}

/** A title without the mark of a footnote, which one of the page's notes begins with. */
function withoutMark(title: string, footnotes: readonly string[]): string {
  const [, text, mark] = /^(.*[\p{L}\p{P}])(\d{1,2}|[*†‡¹²³⁴⁵⁶⁷⁸⁹]{1,3})$/u.exec(title) ?? [];
  return text && mark && footnotes.some((note) => note.startsWith(mark)) ? text.trimEnd() : title;
}

// Where sizes are rough or unknown, the word "Chapter" or a place at the top of the page has to do.
function isChapter({ text, scale, large, line }: Candidate): boolean {
  return large || chapterWord.test(text) || (scale === null && line <= 1);
}

/** Keeps the first of headings that recur on following pages. */
function firstOfEach(candidates: Candidate[]): Candidate[] {
  return candidates.filter((candidate, index) => {
    const before = candidates.slice(Math.max(0, index - 20), index);
    return !before.some(({ page, text }) => candidate.page - page <= 1 && titleKey(text) === titleKey(candidate.text));
  });
}

function count(counts: Map<string, number>, text: string | null | undefined): void {
  if (text) counts.set(titleKey(text), (counts.get(titleKey(text)) ?? 0) + 1);
}

function middle(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
