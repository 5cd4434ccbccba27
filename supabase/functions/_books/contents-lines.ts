import { diffChars } from 'diff';
import type { ContentsEntry } from '../_pipelines/toc-results.ts';
import { readPrintedNumber } from './printed-number.ts';

const likeness = 0.8;
const leaders = /(?:\s*[.…·•_]){3,}\s*|\s{3,}/;

/** A line of a table of contents: title, leaders, page number. Null for any other line. */
export function readContentsLine(line: string): { title: string; printed_page: string } | null {
  const end = /(\S+)\s*$/.exec(line);
  if (!end?.[1] || !readPrintedNumber(end[1])) return null;
  const before = line.slice(0, end.index);
  const gap = new RegExp(`(?:${leaders.source})$`).exec(before);
  if (!gap) return null;
  const title = before.slice(0, gap.index).trim();
  return /\p{L}/u.test(title) ? { title, printed_page: end[1].replace(/^[^\p{L}\p{N}]+/u, '') } : null;
}

/**
 * Reads the lines of a table of contents by its dotted leaders. `sure` says whether that explains nearly all of them, so
 * that nobody else need be asked. A title that runs over two lines is joined.
 */
export function readContents(lines: readonly string[]): { entries: ContentsEntry[]; sure: boolean } {
  const entries: ContentsEntry[] = [];
  let open = '';
  let strange = 0;
  for (const line of lines) {
    const found = readContentsLine(line);
    if (found) {
      const title = joinTitle(open, found.title);
      entries.push({ title: title.slice(0, 300), level: levelOf(title), printed_page: found.printed_page });
      open = '';
      continue;
    }
    if (isPageFurniture(line)) continue;
    if (open !== '') strange++;
    open = line.trim();
  }
  if (open !== '') strange++;
  return { entries: flatten(entries), sure: entries.length >= 3 && strange <= entries.length / 10 };
}

/** A title without its number, dots and letters' case: what two spellings of one title have in common. */
export function titleKey(title: string): string {
  return title
    .normalize('NFKD')
    .toLowerCase()
    .replace(/^\s*(?:(?:chapter|part|section|appendix)\s+)?(?:\d+(?:\.\d+)*|[ivxlc]+)(?:[.):]|\s)\s*(?=\S)/, '')
    .replace(/^\s*(?:[–—-])\s*/, '')
    .replace(/[^\p{L}\p{N}]+/gu, '');
}

/** Whether two titles are one, but for some letters that were read wrongly. */
export function alikeTitles(one: string, other: string): boolean {
  const [a, b] = [titleKey(one), titleKey(other)];
  if (a === b) return a !== '';
  const length = Math.max(a.length, b.length);
  if (Math.min(a.length, b.length) < length * likeness) return false;
  const same = diffChars(a, b).reduce((sum, { added, removed, count = 0 }) => sum + (added || removed ? 0 : count), 0);
  return same >= length * likeness;
}

function joinTitle(open: string, title: string): string {
  // Only what plainly goes on: a numbered beginning, or a small letter after it.
  return open !== '' && (/^\p{Ll}/u.test(title) || /^(?:chapter|part)?\s*[\divxlc]+[.:]?\s/i.test(open))
    ? `${open} ${title}`
    : title;
}

function levelOf(title: string): number {
  const depth = /^\d+((?:\.\d+)+)/.exec(title)?.[1]?.split('.').length ?? 1;
  return Math.min(depth, 6);
}

// Where every entry is of a deeper level, that is the first one.
function flatten(entries: ContentsEntry[]): ContentsEntry[] {
  const top = Math.min(...entries.map(({ level }) => level));
  return entries.map((entry) => ({ ...entry, level: entry.level - top + 1 }));
}

function isPageFurniture(line: string): boolean {
  return (
    readPrintedNumber(line) !== null ||
    /^\s*(?:(?:table of )?contents|page|chapter|inhalt(?:sverzeichnis)?|sommaire)\s*$/i.test(line)
  );
}
