import type { BodyPage } from './contents-body.ts';
import { isContentsTitle, isOtherListTitle, readLineEnd } from './contents-lines.ts';
import { endsOf } from './read-contents.ts';
import { titleKey } from './titles.ts';

/** Consecutive pages that look like a table of contents. */
export interface Stretch {
  first_page: number;
  last_page: number;
  /** How many lines look like entries. */
  lines: number;
  /** Whether they stand under a title such as "Contents". */
  titled: boolean;
}

const fewestEntries = 3;
const fewestUnderTitle = 2;
// Shares of a page's lines.
const leastDotted = 0.4;
const leastEnded = 0.5;
const leastEchoes = 0.6;
/** The least share of numbers that rise. In an index they do not, or a line has several. */
const leastRising = 0.9;
const longestTitle = 120;
/** A table that begins on its title's page begins within so many lines. */
const firstLines = 8;
/** An entry takes so many lines at most: where a table goes on, one ends within them. */
const mostEntryLines = 4;

/** A stretch that may still go on. */
interface Open extends Stretch {
  /** The last number of its lines but one: the last may be misread. */
  value: number;
  /** The titles that a table without numbers lists: where one of them recurs, the text has begun. */
  listed: Set<string> | null;
}

/**
 * Where tables of contents stand, by the look of the lines: dots that lead to numbers, which rise; numbers at the ends of
 * lines below a title such as "Contents"; or, below one, lines that come again as titles further on. In their order.
 */
export function findContents(pages: readonly BodyPage[]): Stretch[] {
  const stretches: Open[] = [];
  let last: Map<string, number> | null = null;
  for (const page of pages) {
    const found = underTitle(page);
    const before = stretches.at(-1);
    const follows = before?.last_page === page.page - 1 && !found.isOther;
    // Below a title that is no running head a new table begins, unless its numbers go on.
    const open = follows && (!found.beginsAnew || goesOn(before, found.lines)) ? before : undefined;
    // On a table's last page the text may begin, and speak of its copyright.
    if (!found.titled && isImprint(open ? page.lines.slice(0, firstLines) : page.lines)) continue;
    if (found.isOther || addNumbered(stretches, open, page.page, found)) continue;
    if (!found.titled && !open?.listed) continue;
    last ??= lastPages(pages);
    addUnnumbered(stretches, open, page.page, found, last);
  }
  return stretches.map(({ value: _, listed: __, ...stretch }) => stretch);
}

const signsOfImprint = [
  /©|\bcopyright\b|\(c\)\s*\d{4}/i,
  /\bISBN\b|\bISSN\b/,
  /all rights reserved|alle rechte vorbehalten|tous droits réservés|reservados todos los derechos|все права защищены|版权所有/i,
  /\bprinted (?:in|by|on)\b|\bfirst (?:edition|published|printing)\b|\b(?:auflage|édition|edición|издание)\b|\bprinting history\b/i,
  /library of congress|cataloging|\bCIP\b|british library|deutsche nationalbibliothek/i,
];

/** An imprint has years, numbers and, on a badly read page, dots: two of its signs tell it from contents. */
function isImprint(lines: BodyPage['lines']): boolean {
  const text = lines.map((line) => line.text).join('\n');
  return signsOfImprint.filter((sign) => sign.test(text)).length >= 2;
}

/** Adds a page whose lines end in numbers to the open stretch, or opens one with it. Returns whether it did. */
function addNumbered(stretches: Open[], open: Open | undefined, page: number, { titled, lines }: Found): boolean {
  const ends = endsOf(lines);
  const head = endsOf(lines.slice(0, firstLines));
  const beginning = head.dotted + head.bare;
  const mostlyEnded = beginning >= Math.min(firstLines, lines.length) * leastEnded;
  if (open && goesOn(open, lines)) {
    // Where the text begins on the table's last page, numbers in it say nothing.
    const of = mostlyEnded ? ends : head;
    Object.assign(open, { last_page: page, lines: open.lines + of.dotted + of.bare, value: floorOf(of.values) });
    return true;
  }
  const dotted = ends.dotted >= fewestEntries && ends.dotted >= lines.length * leastDotted;
  const underTitleToo = titled && beginning >= fewestUnderTitle && mostlyEnded;
  if (ends.rising < leastRising || !(dotted || underTitleToo)) return false;
  const stretch = { first_page: page, last_page: page, lines: ends.dotted + ends.bare, titled };
  stretches.push({ ...stretch, value: floorOf(ends.values), listed: null });
  return true;
}

/**
 * Whether a table with page numbers goes on in these lines: numbers that rise on from it, at the ends of most lines, of the first
 * two, or after dots near the top.
 */
function goesOn(open: Open, lines: BodyPage['lines']): boolean {
  if (open.listed) return false;
  const head = endsOf(lines.slice(0, firstLines));
  const fitting = head.values.filter((value) => value >= open.value).length;
  if (fitting === 0 || fitting < head.values.length / 2) return false;
  const top = endsOf(lines.slice(0, 2));
  return (
    head.dotted + head.bare >= Math.min(firstLines, lines.length) * leastEnded ||
    top.dotted + top.bare === 2 ||
    endsOf(lines.slice(0, mostEntryLines)).dotted > 0
  );
}

const floorOf = (values: readonly number[]) => values.at(-2) ?? values.at(-1) ?? 0;

/** Does the same with a page whose lines recur as titles on later pages. */
function addUnnumbered(
  stretches: Open[],
  open: Open | undefined,
  page: number,
  { titled, lines }: Found,
  last: ReadonlyMap<string, number>,
): void {
  const keys = lines.map(({ text }) => (text.length <= longestTitle ? titleKey(text) : ''));
  const again = keys.filter((key) => (last.get(key) ?? 0) > page);
  const first = keys.slice(0, firstLines);
  const most = first.filter((key) => (last.get(key) ?? 0) > page).length >= first.length * leastEchoes;
  if (again.length < fewestEntries || !most) return;
  if (open?.listed && keys.some((key) => open.listed?.has(key))) return;
  if (open?.listed) {
    for (const key of again) open.listed.add(key);
    Object.assign(open, { last_page: page, lines: open.lines + again.length });
  } else if (titled) {
    const stretch = { first_page: page, last_page: page, lines: again.length, titled, value: 0 };
    stretches.push({ ...stretch, listed: new Set(again) });
  }
}

/** Picks the stretch that is most likely the book's own: the longest, preferably one under a title. */
export function mainContents(stretches: readonly Stretch[]): Stretch | null {
  const titled = stretches.filter((stretch) => stretch.titled);
  return [...(titled.length > 0 ? titled : stretches)].sort((a, b) => b.lines - a.lines)[0] ?? null;
}

/** The lines below a page's title, if it has one. */
type Found = ReturnType<typeof underTitle>;

function underTitle({ lines }: BodyPage) {
  const title = lines.findIndex(({ text }) => isContentsTitle(text));
  const other = lines.findIndex(({ text }) => isOtherListTitle(text));
  const all = title >= 0 ? lines.slice(title + 1) : lines;
  return {
    titled: title >= 0,
    // A page that begins with a list of figures holds no contents, but contents may be followed by such a list.
    isOther: other >= 0 && title < 0 && !hasEntry(lines.slice(0, other)),
    beginsAnew: title > 0,
    lines: other > title && hasEntry(lines.slice(title + 1, other)) ? all.slice(0, other - title - 1) : all,
  };
}

const hasEntry = (lines: BodyPage['lines']) => lines.some(({ text }) => readLineEnd(text) !== null);

/** Notes the last page on which each short line stands. */
function lastPages(pages: readonly BodyPage[]): Map<string, number> {
  const last = new Map<string, number>();
  for (const { page, lines } of pages) {
    for (const { text } of lines) if (text.length <= longestTitle) last.set(titleKey(text), page);
  }
  return last;
}
