import type { FoundHeading, NumberRun, OutlineEntry } from '../_pipelines/books-results.ts';
import type { LinkResult } from '../_pipelines/toc-results.ts';
import { alikeTitles, titleKey } from './contents-lines.ts';
import { labelOf, pageOf } from './number-runs.ts';
import { readPrintedNumber } from './printed-number.ts';

export interface Outline {
  outline: OutlineEntry[];
  unplaced: string[];
  confidence: number;
}

// How far from the page that its number leads to a chapter's heading may stand.
const near = 2;

/**
 * Joins what the printed contents, the headings and the page numbers say. An entry of the contents stands where its
 * heading does, else where its number leads. The headings that the contents do not list come below the entry before them.
 */
export function joinOutline(
  contents: LinkResult | null,
  headings: readonly FoundHeading[],
  runs: readonly NumberRun[],
): Outline {
  const used = new Set<FoundHeading>();
  const unplaced: string[] = [];
  const listed = (contents?.entries ?? []).flatMap((entry): OutlineEntry[] => {
    const number = readPrintedNumber(entry.printed_page);
    const expected = number ? pageOf(number, runs) : null;
    const candidates = headings.filter(
      (candidate) =>
        !used.has(candidate) &&
        !isContentsPage(candidate.page, contents) &&
        (expected === null || Math.abs(candidate.page - expected) <= near),
    );
    const heading =
      candidates.find(({ text }) => titleKey(text) === titleKey(entry.title)) ??
      (expected === null ? undefined : candidates.find(({ text }) => alikeTitles(text, entry.title)));
    if (heading) used.add(heading);
    const page = heading?.page ?? expected ?? entry.page;
    if (page === null) {
      unplaced.push(entry.title);
      return [];
    }
    const sources: OutlineEntry['sources'] = heading ? ['contents', 'headings'] : ['contents'];
    return [{ title: entry.title, level: entry.level, page, label: labelOf(page, runs), sources }];
  });
  const outline = addHeadings(
    listed,
    headings.filter((heading) => !used.has(heading) && !isContentsPage(heading.page, contents)),
    runs,
  );
  return { outline, unplaced, confidence: confidenceOf(listed, unplaced, outline) };
}

function addHeadings(listed: OutlineEntry[], headings: FoundHeading[], runs: readonly NumberRun[]): OutlineEntry[] {
  const first = listed[0]?.page ?? 0;
  const parentOf = (page: number) => listed.findLast((entry) => entry.page <= page);
  const added = headings
    // What stands before the first chapter is title page and imprint.
    .filter(({ page }) => page >= first)
    // A running head that went unnoticed says once more in which chapter it stands.
    .filter(({ page, text }) => titleKey(parentOf(page)?.title ?? '') !== titleKey(text))
    .map(({ page, level, text }): OutlineEntry => {
      const parent = parentOf(page)?.level;
      const under = parent === undefined ? level : parent + Math.max(level - 1, 1);
      return { title: text, level: under, page, label: labelOf(page, runs), sources: ['headings'] };
    });
  const order = (entry: OutlineEntry) => (entry.sources.includes('contents') ? 0 : 1);
  return [...listed, ...added].sort((a, b) => a.page - b.page || order(a) - order(b));
}

/** Contents borne out by headings and page numbers make an outline sure; headings alone leave it open. */
function confidenceOf(listed: OutlineEntry[], unplaced: string[], outline: OutlineEntry[]): number {
  if (listed.length + unplaced.length === 0) return outline.length > 0 ? 0.5 : 0.2;
  const all = listed.length + unplaced.length;
  const borneOut = listed.filter(({ sources }) => sources.includes('headings')).length;
  const inOrder = listed.filter(({ page }, index) => page >= (listed[index - 1]?.page ?? 0)).length;
  return Math.round(((listed.length + borneOut + inOrder) / (3 * all)) * 100) / 100;
}

function isContentsPage(page: number, contents: LinkResult | null): boolean {
  return contents !== null && page >= contents.first_page && page <= contents.last_page;
}
