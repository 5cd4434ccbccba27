import type { FindResult } from '../_pipelines/toc-results.ts';
import type { BodyPage } from './contents-body.ts';
import { findContents } from './contents-pages.ts';
import type { ContentsPages } from './place-entries.ts';

/** So little agreement that a person has to look at it. */
const contradicted = 0.5;

/**
 * Extends the pages of contents that were found by what the neighbouring pages look like, so that a table is read to its end.
 * `agreement` is 1, or less where the pages contradict what was found.
 */
export function contentsRange(
  { first_contents_page: first, last_contents_page: last }: FindResult,
  pages: readonly BodyPage[],
): ContentsPages & { agreement: number } {
  const own = findContents(pages).filter((stretch) => stretch.first_page <= last && stretch.last_page >= first);
  const [begin, end] = [own[0]?.first_page ?? first, own.at(-1)?.last_page ?? last];
  // Pages that were found but do not look like contents hold something else, or contents of an unknown form.
  const agrees = own.length === 1 && begin <= first && end >= last;
  return {
    first_page: Math.min(begin, first),
    last_page: Math.max(end, last),
    agreement: agrees ? 1 : contradicted,
  };
}
