import type { ContentsEntry } from '../_pipelines/toc-results.ts';
import type { BodyPage } from './contents-body.ts';
import { findContents } from './contents-pages.ts';
import type { ContentsPages } from './place-entries.ts';
import { readContents } from './read-contents.ts';
import { titleKey, titleKeys } from './titles.ts';

/** Below this a person has to look at it. */
const doubtful = 0.5;
/** A second table lists so much of what the first one does: a short one before it, or one of a chapter. */
const sameShare = 0.95;

/**
 * Reckons how far the entries agree with what the lines of their pages say by their form alone, from 0 to 1. The reader
 * may know better, but then a person has to confirm it.
 */
export function entriesAgreement(
  entries: readonly ContentsEntry[],
  pages: readonly BodyPage[],
  { first_page: first, last_page: last }: ContentsPages,
): number {
  const read = readContents(pages.filter(({ page }) => page >= first && page <= last));
  const [ours, theirs] = [keysOf(read.entries), keysOf(entries)];
  const both = [...ours].filter((key) => theirs.has(key)).length;
  return Math.min(read.explained, both / Math.max(1, ours.size), both / Math.max(1, theirs.size));
}

function keysOf(list: readonly ContentsEntry[]): Set<string> {
  return new Set(list.map(({ title, printed_page }) => `${titleKey(title)} ${printed_page.toLowerCase()}`));
}

/** Compares the pages of contents with those that look like contents: 1, or less where others list something else, or these go on. */
export function rangeAgreement(
  { first_page: first, last_page: last }: ContentsPages,
  pages: readonly BodyPage[],
): number {
  const stretches = findContents(pages);
  const own = stretches.filter((stretch) => stretch.first_page <= last && stretch.last_page >= first);
  const exact = own.some((stretch) => stretch.first_page === first && stretch.last_page === last);
  // The short table may write "A Tools" where the full one writes "Appendix A Tools".
  const entriesOn = ({ first_page, last_page }: ContentsPages) =>
    readContents(pages.filter(({ page }) => page >= first_page && page <= last_page)).entries.map(
      ({ title, printed_page }) => titleKeys(title).map((key) => `${key} ${printed_page.toLowerCase()}`),
    );
  const known = new Set(entriesOn({ first_page: first, last_page: last }).flat());
  const says = (stretch: ContentsPages) => {
    const listed = entriesOn(stretch);
    const same = listed.filter((keys) => keys.some((key) => known.has(key)));
    return listed.length > 0 && same.length >= listed.length * sameShare;
  };
  const others = stretches.filter((stretch) => stretch.titled && !own.includes(stretch));
  return exact && others.every(says) ? 1 : doubtful;
}
