import type { FoundHeading, OutlineEntry } from '../_pipelines/books-results.ts';
import type { PageLine } from '../_pipelines/pages-results.ts';
import { isContentsTitle } from './contents-lines.ts';
import { headingFinder } from './page-parts.ts';
import type { PageRow } from './page-rows.ts';
import { alikeKeys, numbersOf, titleKey, titleKeys } from './titles.ts';

/** A heading with its key. */
export type KeyedHeading = FoundHeading & { key: string };

/** Headings away from the text's edge stand on so many pages at least, by size and indent: fewer are part of a picture or a table. */
const fewestPages = 3;
/** In points. */
const sameIndent = 2;
/** A label such as "Appendix A" or "TWO" has at most so many words. */
const longestLabel = 3;

/** Words that stand over a remark in the midst of a text. */
const remark =
  /^(?:notes?|tip|hint|warning|caution|important|attention|danger|hinweis|warnung|achtung|remarque|astuce|nota|aviso|advertencia|примечание|внимание|注意|注)[.:!]?$/iu;

/** Where a heading stands, and what comes after it. */
interface Place {
  x: number | null;
  /** Whether it begins where most of the page's text does. */
  atEdge: boolean;
  /** The key of the line that follows. */
  next: string;
  /** Whether the page was read by its letters, whose sizes are exact. */
  isExact: boolean;
}

/**
 * Parts the headings that printed contents do not list into those that head sections all the same and the others: pieces and labels of
 * listed titles, titles of notes that come again and again, and words in pictures and tables.
 */
export function partHeadings(
  unlisted: readonly KeyedHeading[],
  all: readonly KeyedHeading[],
  listed: readonly OutlineEntry[],
  pages: readonly PageRow[],
): { kept: KeyedHeading[]; left: KeyedHeading[] } {
  const times = new Map<string, number>();
  for (const { key } of unlisted) times.set(key, (times.get(key) ?? 0) + 1);
  const placeOf = placesOn(pages);
  const pagesOfKind = new Map<string, Set<number>>();
  for (const heading of all) {
    for (const kind of kindsOf(heading, placeOf(heading))) {
      const on = pagesOfKind.get(kind) ?? new Set();
      pagesOfKind.set(kind, on.add(heading.page));
    }
  }
  const titles = new Map<number, string[]>();
  for (const { page, title } of listed) titles.set(page, [...(titles.get(page) ?? []), ...titleKeys(title)]);
  const numbered = new Set(listed.map(({ title }) => numberedKey(title)));
  const isSection = (heading: KeyedHeading) => {
    const { key, page, text } = heading;
    if (key === '' || remark.test(text.trim()) || isContentsTitle(text)) return false;
    // A second table of contents has the titles of sections that stand elsewhere.
    if (numbersOf(text) !== null && numbered.has(numberedKey(text))) return false;
    // A title without a number that comes again heads notes, examples and the like.
    if ((times.get(key) ?? 0) > 1 && numbersOf(text) === null) return false;
    const around = [page - 1, page, page + 1].flatMap((number) => titles.get(number) ?? []);
    if (around.some((title) => title.includes(key) || alikeKeys(title, key))) return false;
    const place = placeOf(heading);
    const isLabel = text.split(/\s+/).length <= longestLabel && place !== null && place.next !== '';
    if (isLabel && (titles.get(page) ?? []).some((title) => title.startsWith(place.next))) return false;
    const kinds = kindsOf(heading, place);
    return (
      kinds.length === 0 || place?.atEdge || kinds.some((kind) => (pagesOfKind.get(kind)?.size ?? 0) >= fewestPages)
    );
  };
  const kept = unlisted.filter(isSection);
  const known = new Set(kept);
  return { kept, left: unlisted.filter((heading) => !known.has(heading)) };
}

function numberedKey(title: string): string {
  return `${numbersOf(title)?.join('.') ?? ''} ${titleKey(title)}`;
}

/** The kinds that a heading may be of, by its size and indent: two, as an indent may lie between two steps. None where either is rough. */
function kindsOf({ scale }: FoundHeading, place: Place | null): string[] {
  if (scale === null || !place?.isExact || place.x === null) return [];
  const step = place.x / (2 * sameIndent);
  return [`${scale} ${Math.floor(step)} a`, `${scale} ${Math.round(step)} b`];
}

function placesOn(pages: readonly PageRow[]): (heading: KeyedHeading) => Place | null {
  const byNumber = new Map(pages.map((page) => [page.number, page.blend_result]));
  const finders = new Map<number, ReturnType<typeof headingFinder>>();
  return ({ page, text }) => {
    const blend = byNumber.get(page);
    if (!blend) return null;
    const find = finders.get(page) ?? headingFinder(blend.lines.map((line) => line.text));
    finders.set(page, find);
    const place = find(text);
    if (!place) return null;
    const x = blend.lines[place.line]?.x ?? null;
    return {
      x,
      atEdge: x !== null && Math.abs(x - usualX(blend.lines)) <= sameIndent,
      next: titleKey(blend.lines[place.line + place.count]?.text ?? ''),
      isExact: blend.readings[0] !== 'ocr',
    };
  };
}

/** Where most of the text begins, by its length; 0 where that is unknown. */
function usualX(lines: readonly PageLine[]): number {
  const weights = new Map<number, number>();
  for (const { x, text } of lines) if (x !== null) weights.set(x, (weights.get(x) ?? 0) + text.length);
  return [...weights].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
}
