import { excerpt } from '../_millrace/mod.ts';
import type { ContentsEntry } from '../_pipelines/toc-results.ts';
import { normalForm } from '../_services/text/normal-form.ts';
import type { PageRow } from './page-rows.ts';
import type { ContentsPages } from './place-entries.ts';
import { titleKey } from './titles.ts';

/** More lines than a hundred pages hold. */
const longestContents = 500_000;

/** Keeps the entries whose titles are printed on the pages of the contents, in consecutive lines. */
export function printedEntries(
  entries: readonly ContentsEntry[],
  pages: readonly PageRow[],
  { first_page: first, last_page: last }: ContentsPages,
): ContentsEntry[] {
  const all = pages
    .filter(({ number }) => number >= first && number <= last)
    .flatMap(({ blend_result: page }) => page?.lines ?? [])
    .map(({ text }) => comparable(text))
    .join('');
  const printed = excerpt(all, longestContents);
  return entries.filter(({ title }) => titleKey(title) !== '' && printed.includes(comparable(title)));
}

function comparable(text: string): string {
  return normalForm(text, 'NFKD')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '');
}
