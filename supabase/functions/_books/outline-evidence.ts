import type { FoundHeading, OutlineEntry } from '../_pipelines/books-results.ts';
import type { FileOutline } from '../_pipelines/toc-results.ts';
import type { PlacedEntry } from './place-entries.ts';
import { missingNumbers } from './read-contents.ts';
import { alikeKeys, isCounted, titleKey, titleKeys } from './titles.ts';

/** Evidence about a book's outline besides the entries themselves. */
export interface Evidence {
  /** From 0 to 1: how far the entries agree with the lines of the pages of contents. */
  agreement: number;
  /** The entries of the outline that the file brings along. */
  file: FileOutline['entries'];
  /** The headings over the text, outside the pages of contents. */
  headings: readonly FoundHeading[];
}

// The printed contents list a kind of titles if more than this share of them is there; a few may be there by chance, since
// titles such as "Examples" occur in several kinds.
const listsKind = 0.2;
// Where so many of a kind's listed titles are numbered, contents leave out those without a number, such as a licence's parts.
const numbersKind = 0.9;
// Where so many entries are numbered, a chapter without a number has parts that the contents leave out, whatever their kind.
const numbersMost = 0.75;
// The file's outline may lead to the end of the page before the one that the contents name.
const near = 1;

/**
 * Rates how credible the printed contents are, from 0 to 1: the lowest of five ratings, since each sees faults that the others
 * cannot. They rate the lines on the pages of contents, the titles on the pages that these lead to, the order of those
 * pages, the numbers of the titles, and the file's own outline where there is one.
 */
export function contentsConfidence(placed: readonly PlacedEntry[], { agreement, file, headings }: Evidence): number {
  if (placed.length === 0) return 0;
  const known = pagesByTitle(file);
  const isBorneOut = ({ title, page, found }: PlacedEntry) =>
    page !== null &&
    (found || titleKeys(title).some((key) => known.get(key)?.some((other) => Math.abs(other - page) <= near)));
  const pages = placed.flatMap(({ page }) => page ?? []);
  const inOrder = pages.filter((page, at) => page >= (pages[at - 1] ?? 0)).length;
  const missing = missingNumbers(placed.map(({ title }) => title));
  return Math.min(
    agreement,
    placed.filter(isBorneOut).length / placed.length,
    (inOrder + placed.length - pages.length) / placed.length,
    placed.length / (placed.length + missing),
    listedShare(placed, file.length > 0 ? fromFile(placed, file) : fromHeadings(placed, headings)),
  );
}

/** A title known from elsewhere. Contents list all titles of a kind, or none of them. */
interface Witnessed {
  keys: string[];
  kind: string;
  page: number;
  numbered: boolean;
}

/**
 * Reckons what share of the known titles the contents list, among the kinds that they list at all. Only titles from the first
 * entry to the last tell which kinds those are: contents that end too early list none of what comes after. A title without a number
 * counts for nothing among those of a kind that have one. 1 where no title is known, and 0 where no known kind is listed.
 */
function listedShare(placed: readonly PlacedEntry[], witnessed: readonly Witnessed[]): number {
  const isListed = listing(placed);
  const last = placed.reduce((most, { page }) => Math.max(most, page ?? 0), 0);
  const kinds = new Map<string, { all: number; listed: number; within: number; listedWithin: number }>();
  const known = witnessed.map((title) => ({ ...title, isKnown: isListed(title.keys, title.page) }));
  const isNumbered = numberedKinds(known.filter((title) => title.isKnown));
  const isUnder = underNoNumber(placed);
  for (const { kind, page, numbered, isKnown } of known) {
    if (!isKnown && !numbered && (isNumbered(kind) || isUnder(page))) continue;
    const count = kinds.get(kind) ?? { all: 0, listed: 0, within: 0, listedWithin: 0 };
    const [listed, within] = [isKnown ? 1 : 0, page <= last ? 1 : 0];
    kinds.set(kind, {
      all: count.all + 1,
      listed: count.listed + listed,
      within: count.within + within,
      listedWithin: count.listedWithin + listed * within,
    });
  }
  const used = [...kinds.values()].filter((count) => count.listedWithin > count.within * listsKind);
  const all = used.reduce((sum, count) => sum + count.all, 0);
  if (all === 0) return witnessed.length === 0 ? 1 : 0;
  return used.reduce((sum, count) => sum + count.listed, 0) / all;
}

/** Tells the kinds of listed titles that nearly all have a number. */
function numberedKinds(listed: readonly Witnessed[]): (kind: string) => boolean {
  const kinds = new Map<string, { all: number; numbered: number }>();
  for (const { kind, numbered } of listed) {
    const { all, numbered: before } = kinds.get(kind) ?? { all: 0, numbered: 0 };
    kinds.set(kind, { all: all + 1, numbered: before + (numbered ? 1 : 0) });
  }
  return (kind) => {
    const { all = 0, numbered = 0 } = kinds.get(kind) ?? {};
    return all > 0 && numbered >= all * numbersKind;
  };
}

/**
 * Tells whether a page belongs to a chapter without a number, such as a licence, in contents that number most entries. They leave
 * out the parts of such a chapter.
 */
function underNoNumber(placed: readonly PlacedEntry[]): (page: number) => boolean {
  const entries = placed.filter((entry) => entry.page !== null);
  const without = entries.filter(({ title }) => !isCounted(title)).length;
  if (without > entries.length * (1 - numbersMost)) return () => false;
  return (page) => {
    const before = entries.findLast((entry) => (entry.page ?? 0) <= page);
    return before !== undefined && !isCounted(before.title);
  };
}

/** Tells whether the contents list a title: by its key, or near its page by nearly the same letters, as a font may lose some. */
function listing(placed: readonly PlacedEntry[]): (keys: readonly string[], page: number) => boolean {
  const known = new Set<string>();
  const byPage = new Map<number, string[]>();
  for (const { title, page } of placed) {
    for (const key of titleKeys(title)) {
      known.add(key);
      if (page !== null) byPage.set(page, [...(byPage.get(page) ?? []), key]);
    }
  }
  return (keys, page) => {
    if (keys.some((key) => known.has(key))) return true;
    const around = [page - near, page, page + near].flatMap((number) => byPage.get(number) ?? []);
    return keys.some((key) => around.some((other) => alikeKeys(other, key)));
  };
}

/** Takes what the file's outline lists from the first entry on; before that come covers and the contents themselves. */
function fromFile(placed: readonly PlacedEntry[], file: FileOutline['entries']): Witnessed[] {
  const first = firstPage(placed);
  return file
    .filter(({ page }) => page !== null && page >= first)
    .map(({ title, level, page }) => ({
      keys: titleKeys(title),
      kind: `${level}`,
      page: page ?? 0,
      numbered: isCounted(title),
    }))
    .filter(({ keys }) => keys.every((key) => key !== ''));
}

/** Takes the headings from there on: letters of one size head one kind of section. Now and then one is a line of code. */
function fromHeadings(placed: readonly PlacedEntry[], headings: readonly FoundHeading[]): Witnessed[] {
  const first = firstPage(placed);
  return headings
    .filter(({ page, scale }) => page >= first && scale !== null)
    .map(({ text, level, scale, page }) => ({
      keys: titleKeys(text),
      kind: `${level} ${scale}`,
      page,
      numbered: isCounted(text),
    }));
}

function firstPage(placed: readonly PlacedEntry[]): number {
  return Math.min(...placed.flatMap(({ page }) => page ?? []));
}

function pagesByTitle(file: FileOutline['entries']): Map<string, number[]> {
  const pages = new Map<string, number[]>();
  for (const { title, page } of file) {
    if (page === null) continue;
    const key = titleKey(title);
    const known = pages.get(key);
    if (known) known.push(page);
    else pages.set(key, [page]);
  }
  return pages;
}

/** Without printed contents nothing confirms the headings. */
export function headingsConfidence(outline: readonly OutlineEntry[]): number {
  return outline.length > 0 ? 0.5 : 0.2;
}
