import type { FoundHeading, NumberRun, OutlineEntry } from '../_pipelines/books-results.ts';
import type { LinkResult } from '../_pipelines/toc-results.ts';
import { doubtHeadings } from './heading-doubts.ts';
import { labelOf } from './number-runs.ts';
import { contentsConfidence, type Evidence, headingsConfidence } from './outline-evidence.ts';
import type { PageRow } from './page-rows.ts';
import { type PlacedEntry, placeEntries } from './place-entries.ts';
import { alikeKeys, titleKey } from './titles.ts';
import { type KeyedHeading, partHeadings } from './unlisted-headings.ts';

export interface Outline {
  outline: OutlineEntry[];
  unplaced: string[];
  /** Headings that the contents do not list and that head no section, as far as can be seen. */
  left_out: string[];
  confidence: number;
}

// How many pages a chapter's heading may stand away from the page that its number leads to.
const near = 2;
/** A row shows so many of the headings that were left out. */
const mostLeftOut = 500;

/**
 * Joins what the printed contents, the headings and the page numbers say. An entry of the contents stands where its
 * title does, else where its number leads. The headings that the contents do not list come below the entry before them.
 * `pages` are all of the book.
 */
export function joinOutline(
  contents: LinkResult | null,
  headings: readonly FoundHeading[],
  runs: readonly NumberRun[],
  pages: readonly PageRow[],
  evidence: Omit<Evidence, 'headings'>,
): Outline {
  const keyed = headings
    .filter(({ page }) => !isContentsPage(page, contents))
    .map((heading) => ({ ...heading, key: titleKey(heading.text) }));
  const placed = contents ? withHeadings(placeEntries(contents.entries, pages, runs, contents), keyed) : [];
  const listed = placed.flatMap(({ title, level, page, found }): OutlineEntry[] => {
    const sources: OutlineEntry['sources'] = found ? ['contents', 'headings'] : ['contents'];
    return page === null ? [] : [{ title, level, page, label: labelOf(page, runs), sources }];
  });
  const used = new Set(placed.flatMap(({ heading }) => heading ?? []));
  const others = keyed.filter((heading) => !used.has(heading));
  // Without contents all that is known are the headings.
  const parted = listed.length > 0 ? partHeadings(others, keyed, listed, pages) : { kept: others, left: [] };
  const doubts = doubtHeadings(parted.kept, pages);
  const isStray = (heading: KeyedHeading) => doubts.areFew && doubts.doubtful.has(heading);
  const left = [...parted.left, ...parted.kept.filter(isStray)];
  const outline = addHeadings(
    listed,
    parted.kept.filter((heading) => !isStray(heading)),
    runs,
  );
  const believed = keyed.filter((heading) => !left.includes(heading));
  const confidence = Math.min(
    placed.length > 0 ? contentsConfidence(placed, { ...evidence, headings: believed }) : headingsConfidence(outline),
    doubts.rating,
  );
  return {
    outline,
    left_out: left.slice(0, mostLeftOut).map(({ text }) => text),
    unplaced: placed.filter(({ page }) => page === null).map(({ title }) => title),
    // Rounded down, so that it never claims more than was found.
    confidence: Math.floor(confidence * 100) / 100,
  };
}

/** Gives each entry its heading, and no heading to two entries: by the same text, else by nearly the same letters. */
function withHeadings(
  placed: readonly PlacedEntry[],
  headings: readonly KeyedHeading[],
): (PlacedEntry & { heading: FoundHeading | null })[] {
  const byPage = new Map<number, KeyedHeading[]>();
  const byKey = new Map<string, KeyedHeading[]>();
  for (const heading of headings) {
    addTo(byPage, heading.page, heading);
    addTo(byKey, heading.key, heading);
  }
  const used = new Set<KeyedHeading>();
  const around = (page: number) => [0, 1, -1, near, -near].flatMap((distance) => byPage.get(page + distance) ?? []);
  return placed.map((entry) => {
    const key = titleKey(entry.title);
    const candidates = (entry.page === null ? (byKey.get(key) ?? []) : around(entry.page)).filter(
      (heading) => !used.has(heading),
    );
    const heading =
      candidates.find((candidate) => candidate.key === key) ??
      (entry.found ? undefined : candidates.find((candidate) => alikeKeys(candidate.key, key))) ??
      null;
    if (!heading) return { ...entry, heading };
    used.add(heading);
    return { ...entry, heading, page: entry.found ? entry.page : heading.page, found: true };
  });
}

function addTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

function addHeadings(
  listed: OutlineEntry[],
  headings: readonly KeyedHeading[],
  runs: readonly NumberRun[],
): OutlineEntry[] {
  const first = listed[0]?.page ?? 0;
  const parents = listed.map((entry, at) => ({ ...entry, at, key: titleKey(entry.title) }));
  const byPage = [...parents].sort((a, b) => a.page - b.page || a.at - b.at);
  const parentOf = (page: number) => lastUpTo(byPage, page);
  const added = headings
    // Before the first chapter come only title page and imprint.
    .filter(({ page }) => page >= first)
    // A running head that nobody noticed repeats the title of its chapter.
    .filter(({ page, key }) => (parentOf(page)?.key ?? '') !== key)
    .map(({ page, level, text }): OutlineEntry => {
      const parent = parentOf(page)?.level;
      const under = parent === undefined ? level : parent + Math.max(level - 1, 1);
      return { title: text, level: under, page, label: labelOf(page, runs), sources: ['headings'] };
    });
  const order = (entry: OutlineEntry) => (entry.sources.includes('contents') ? 0 : 1);
  return [...listed, ...added].sort((a, b) => a.page - b.page || order(a) - order(b));
}

function lastUpTo<T extends { page: number }>(sorted: readonly T[], page: number): T | undefined {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle]?.page ?? 0) <= page) low = middle + 1;
    else high = middle;
  }
  return sorted[low - 1];
}

function isContentsPage(page: number, contents: LinkResult | null): boolean {
  return contents !== null && page >= contents.first_page && page <= contents.last_page;
}
