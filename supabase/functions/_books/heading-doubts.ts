import { looksLikeText } from '../_services/text/text-quality.ts';
import { headingFinder } from './page-parts.ts';
import type { PageRow } from './page-rows.ts';

/** A heading that the contents do not list, with its page. */
export interface UnlistedHeading {
  page: number;
  title: string;
}

/** So few may be strays; of more, their share of the unlisted headings counts. */
const mostStrays = 2;
/** A title of fewer words may well end like half a sentence, or stand before a line that begins with a small letter, such as a command. */
const fewestWords = 5;
const shortPiece = 3;

const unfinished = /(?:[,;:–-]|\s(?:and|or|of|the|in|a|an|to|for|with|from|by|on|is|are|was|that|which))$/i;
const sentenceEnd = /\p{L}{2}[.!?]\s+\p{Lu}/u;

/**
 * Rates the headings that no printed contents confirm, from 0 to 1: by how many of them are noise of a badly read page, or running
 * text that only looks like a heading. `all` is how many entries the outline has.
 */
export function headingsRating(headings: readonly UnlistedHeading[], pages: readonly PageRow[], all: number): number {
  const finders = new Map<number, ReturnType<typeof lineAfter>>();
  const byNumber = new Map(pages.map((page) => [page.number, page]));
  const doubtful = headings.filter(({ page, title }) => {
    if (isNoise(title) || sentenceEnd.test(title)) return true;
    // "What oil is for" is a title.
    if (title.split(/\s+/).length < fewestWords) return false;
    const after = finders.get(page) ?? lineAfter(byNumber.get(page));
    finders.set(page, after);
    return unfinished.test(title) || /^\p{Ll}/u.test(after(title));
  }).length;
  if (doubtful === 0) return 1;
  return 1 - doubtful / (doubtful > mostStrays ? headings.length : all);
}

/** Noise has letters as no language has them, or hardly a word. */
function isNoise(title: string): boolean {
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
