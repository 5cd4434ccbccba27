import type { FoundHeading } from '../_pipelines/books-results.ts';
import { looksLikeText } from '../_services/text/text-quality.ts';
import { headingFinder } from './page-parts.ts';
import type { PageRow } from './page-rows.ts';
import { numbersOf } from './titles.ts';

/**
 * On so few pages they are strays, and of a long book on one of so many pages; on more, their share of the unlisted headings counts.
 * A picture or an example may bring several to its page.
 */
const mostStrays = 2;
const pagesOfStray = 50;
const mostOnPage = 3;
/** A title of fewer words may well end like half a sentence, or stand before a line that begins with a small letter, such as a command. */
const fewestWords = 5;
const shortPiece = 3;

const unfinished = /(?:[,;:–-]|\s(?:and|or|of|the|in|a|an|to|for|with|from|by|on|is|are|was|that|which))$/i;
const sentenceEnd = /\p{L}{2}[.!?]\s+\p{Lu}/u;

/**
 * Finds the headings that no printed contents confirm and that are noise of a badly read page, or running text that only looks like
 * a heading. `rating`, from 0 to 1, is lower the more of them are; it stays 1 where they are so few that they can be left out.
 */
export function doubtHeadings<T extends FoundHeading>(
  headings: readonly T[],
  pages: readonly PageRow[],
): { doubtful: Set<T>; areFew: boolean; rating: number } {
  const finders = new Map<number, ReturnType<typeof lineAfter>>();
  const byNumber = new Map(pages.map((page) => [page.number, page]));
  const isDoubtful = ({ page, text: title }: T) => {
    if (isNoise(title) || sentenceEnd.test(title)) return true;
    // "What oil is for" is a title.
    if (title.split(/\s+/).length < fewestWords) return false;
    const after = finders.get(page) ?? lineAfter(byNumber.get(page));
    finders.set(page, after);
    return unfinished.test(title) || /^\p{Ll}/u.test(after(title));
  };
  const doubtful = new Set(headings.filter(isDoubtful));
  const most = Math.max(mostStrays, Math.ceil(pages.length / pagesOfStray));
  const strayPages = new Set([...doubtful].map(({ page }) => page)).size;
  const areFew = strayPages <= most && doubtful.size <= most + mostOnPage - 1;
  return { doubtful, areFew, rating: areFew ? 1 : 1 - doubtful.size / headings.length };
}

/** Noise has letters as no language has them, or hardly a word. A name of a program's function has neither, but its section has a number. */
function isNoise(title: string): boolean {
  if ((numbersOf(title)?.length ?? 0) > 1) return false;
  const pieces = title.split(/\s+/);
  return !looksLikeText(title) || (pieces.length >= shortPiece && pieces.every(({ length }) => length <= shortPiece));
}

/** Finds the line that follows a heading; empty where there is none. */
function lineAfter(page: PageRow | undefined): (title: string) => string {
  const lines = (page?.blend_result?.lines ?? []).map(({ text }) => text);
  const find = headingFinder(lines);
  return (title) => {
    const place = find(title);
    return place ? (lines[place.line + place.count] ?? '') : '';
  };
}
