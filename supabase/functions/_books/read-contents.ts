import { excerpt } from '../_millrace/mod.ts';
import type { PageLine } from '../_pipelines/pages-results.ts';
import type { ContentsEntry } from '../_pipelines/toc-results.ts';
import type { BodyPage } from './contents-body.ts';
import { levelsOf } from './contents-levels.ts';
import {
  type ContentsLine,
  isContentsTitle,
  isOtherListTitle,
  isPageFurniture,
  readLineEnd,
} from './contents-lines.ts';
import { orderOf, readPrintedNumber } from './printed-number.ts';
import { risingNumbers } from './rising-numbers.ts';
import { numbersOf } from './titles.ts';

/** A table of contents, read from the form of its lines alone. */
export interface ReadContents {
  entries: ContentsEntry[];
  /** From 0 to 1: the share of the lines that are explained, and of the numbered titles that are not missing. */
  explained: number;
  /** Whether nearly all is explained, so that no model need be asked. */
  sure: boolean;
}

/** More entries than any book lists. The rest is left out, and the contents do not count as sure. */
export const mostEntries = 2000;
const longestTitle = 300;
const fewestEntries = 3;
/** How many lines an entry may take. */
const longestEntry = 4;
const sureShare = 0.97;
/** As a share of the letters' size: an indent smaller than this counts as none. */
const leastHanging = 0.3;
const namedPart = /^(?:chapter|part|appendix|section|book)\s+[\dA-Zivxlc]{1,8}(?![\p{L}\p{N}])/iu;
const unfinished = /(?:[,:–-]|\s(?:and|or|of|the|in|a|an|to|for|with|from|by|on))$/i;
// Dots prove a page number; a line that merely ends in a number counts where it fits among those.
const weights = { dotted: 4, bare: 1 };

export interface Line extends PageLine {
  end: ContentsLine | null;
}

/**
 * Reads a table of contents by its lines: those that lead to a number by dots, those that end in one which fits between its
 * neighbours', titles over several lines, parts without a number; and, where no page numbers are printed, each line as
 * a title. Of two tables on these pages the longer is read, and lists of figures and the like are left out.
 */
export function readContents(pages: readonly BodyPage[]): ReadContents {
  const believed = believe(mainTable(pages.flatMap((page) => page.lines)));
  const withNumbers = believed.filter(({ end }) => end).length >= Math.max(fewestEntries, believed.length / 8);
  const lines = withNumbers ? believed.slice(0, endOfTable(believed)) : believed;
  const { entries, malformed } = assemble(lines, withNumbers);
  const used = entries.slice(0, mostEntries);
  const missing = missingNumbers(entries.map(({ title }) => title));
  const accounted = Math.max(0, lines.length - malformed) / Math.max(1, lines.length);
  const explained = Math.min(accounted, entries.length / Math.max(1, entries.length + missing));
  const levels = levelsOf(used);
  const numbered = entries.filter(({ printed_page }) => printed_page !== '').length;
  return {
    entries: used.map(({ title, printed_page }, at) => ({
      title: excerpt(title, longestTitle),
      level: levels[at] ?? 1,
      printed_page,
    })),
    explained: Math.floor(explained * 100) / 100,
    sure: numbered >= fewestEntries && explained >= sureShare && entries.length <= mostEntries,
  };
}

/** Says whether these lines, perhaps a page of contents, have page numbers that rise from the first to the last. */
export function endsOf(lines: readonly PageLine[]): { dotted: number; bare: number; rising: number; values: number[] } {
  const ended = lines.flatMap(({ text }) => readLineEnd(text) ?? []);
  const rising = risingNumbers(ended.map(numberOf));
  const inOrder = ended.filter((_, at) => rising[at]);
  // An index has several numbers on a line.
  const dotted = ended.filter((end) => end.dotted || /\d,$/.test(end.title));
  return {
    dotted: dotted.length,
    bare: inOrder.filter((end) => !end.dotted).length,
    rising: dotted.length === 0 ? 1 : inOrder.filter((end) => end.dotted).length / dotted.length,
    values: inOrder.map((end) => numberOf(end).value),
  };
}

function numberOf({ printed_page, dotted }: ContentsLine): { value: number; weight: number } {
  const number = readPrintedNumber(printed_page);
  return {
    value: number ? orderOf(number) : 0,
    weight: dotted ? weights.dotted : weights.bare,
  };
}

/**
 * How many titles are missing by the numbers of those that are there: one between 2.1 and 2.3. Numbers may begin anew.
 */
export function missingNumbers(titles: readonly string[]): number {
  const furthest = 20;
  const last = new Map<string, number>();
  let missing = 0;
  for (const title of titles) {
    const numbers = numbersOf(title);
    if (!numbers) continue;
    const own = numbers.at(-1) ?? 0;
    const parent = numbers.slice(0, -1).join('.');
    const gap = own - (last.get(parent) ?? 0) - 1;
    if (gap > 0 && gap <= furthest) missing += gap;
    last.set(parent, own);
    last.delete(numbers.join('.'));
  }
  return missing;
}

/** Picks the table of contents among all lines: from one title to the next, the part with the most entries. */
function mainTable(lines: readonly PageLine[]): Line[] {
  const tables: { isOther: boolean; lines: Line[]; last: number }[] = [];
  let table = { isOther: false, lines: [] as Line[], last: Number.NEGATIVE_INFINITY };
  for (const line of lines) {
    const end = readLineEnd(line.text);
    const isOther = isOtherListTitle(line.text);
    if (isOther || isContentsTitle(line.text)) {
      tables.push(table);
      table = { isOther, lines: [], last: Number.NEGATIVE_INFINITY };
      continue;
    }
    if (isPageFurniture(line.text)) continue;
    table.lines.push({ ...line, end });
  }
  const joined = joinTables([...tables, table]);
  const entriesOf = ({ lines: of }: { lines: Line[] }) => of.filter(({ end }) => end).length + of.length / 1000;
  return joined.sort((a, b) => entriesOf(b) - entriesOf(a))[0]?.lines ?? [];
}

/** Tells a table that goes on, headed "Contents" on each page, from a new one, which begins with lower numbers. */
function joinTables(tables: readonly { isOther: boolean; lines: Line[] }[]): { lines: Line[] }[] {
  const joined: { lines: Line[] }[] = [];
  for (const { isOther, lines } of tables) {
    if (isOther || lines.length === 0) continue;
    const last = joined.at(-1);
    const [end] = valuesOf(last?.lines ?? []).slice(-1);
    const [begin] = valuesOf(lines);
    if (last && begin !== undefined && end !== undefined && begin >= end)
      for (const line of lines) last.lines.push(line);
    else joined.push({ lines: [...lines] });
  }
  return joined;
}

function valuesOf(lines: readonly Line[]): number[] {
  const ended = lines.flatMap(({ end }) => end ?? []);
  const rising = risingNumbers(ended.map(numberOf));
  return ended.filter((_, at) => rising[at]).map((end) => numberOf(end).value);
}

/** Takes the page number off each line that has no dots and does not fit among the others. */
function believe(lines: readonly Line[]): (Line & { misplaced: boolean })[] {
  const ended = lines.filter(({ end }) => end);
  const rising = risingNumbers(ended.map(({ end }) => numberOf(end as ContentsLine)));
  const inOrder = new Set(ended.filter((_, at) => rising[at]));
  return lines.map((line) => {
    const fits = inOrder.has(line);
    const end = line.end && (fits || line.end.dotted) ? line.end : null;
    return { ...line, end, misplaced: end !== null && !fits };
  });
}

/**
 * Finds where text begins on the table's last page: after a longest entry's lines without a number. A table that goes on after
 * them, with dots, has a title that is longer still.
 */
function endOfTable(lines: readonly (Line & { misplaced: boolean })[]): number {
  let since = 0;
  let dottedAfter = lines.filter(isDotted).length;
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    since = line?.end ? 0 : since + 1;
    if (line && isDotted(line)) dottedAfter--;
    if (since >= longestEntry && dottedAfter < fewestEntries) return at - since + 1;
  }
  return lines.findLastIndex(({ end }) => end !== null) + 1;
}

function isDotted({ end, misplaced }: Line & { misplaced: boolean }): boolean {
  return end?.dotted === true && !misplaced;
}

interface Assembled {
  title: string;
  printed_page: string;
  x: number | null;
  size: number | null;
}

/** A title whose page number has not come yet. */
interface Open {
  first: Line;
  title: string;
  lines: number;
}

/** Makes entries of lines; `strange` counts the lines that belong to no entry. */
function assemble(
  lines: readonly (Line & { misplaced: boolean })[],
  withNumbers: boolean,
): { entries: Assembled[]; malformed: number } {
  const entries: Assembled[] = [];
  let malformed = lines.filter(({ misplaced }) => misplaced).length;
  const close = (open: Open | null): null => {
    if (!open) return null;
    const stands = /\p{L}/u.test(open.title) && (!withNumbers || hasNumber(open.title));
    if (stands) entries.push(entryOf(open.first, open.title, ''));
    // A part may have no page; the number of any other title went unread.
    if (!stands || (withNumbers && !/^part\b/i.test(open.title))) malformed += open.lines;
    return null;
  };
  let open: Open | null = null;
  for (const line of lines) {
    const own = line.end?.title ?? line.text.trim();
    if (open && !goesOn(open, line, own, withNumbers)) open = close(open);
    const { first, title, lines: before }: Open = open ?? { first: line, title: '', lines: 0 };
    const joined = joinWords(title, own);
    open = line.end ? null : { first, title: joined, lines: before + 1 };
    if (line.end) entries.push(entryOf(first, joined, line.end.printed_page));
  }
  close(open);
  return { entries, malformed };
}

function entryOf({ x, size }: Line, title: string, printed_page: string): Assembled {
  return { title, printed_page, x, size };
}

/** Says whether a title without a page number yet goes on in this line, which reads `own`. */
function goesOn({ first, title }: Open, line: Line, own: string, withNumbers: boolean): boolean {
  if (hasNumber(own) || title.length >= longestTitle) return false;
  if (/^\p{Ll}/u.test(own) || unfinished.test(title)) return true;
  const known = first.x !== null && line.x !== null;
  const hangs = known && (line.x ?? 0) > (first.x ?? 0) + (first.size ?? 1) * leastHanging;
  if (!withNumbers) return hangs && hasNumber(title);
  return hangs || (hasNumber(title) && !(known && (line.x ?? 0) < (first.x ?? 0) - 1));
}

function hasNumber(title: string): boolean {
  return title.length <= longestTitle && (numbersOf(title) !== null || namedPart.test(title));
}

function joinWords(one: string, other: string): string {
  if (one === '') return other;
  return /\p{Ll}-$/u.test(one) && /^\p{Ll}/u.test(other) ? `${one.slice(0, -1)}${other}` : `${one} ${other}`;
}
