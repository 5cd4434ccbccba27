import type { LostText } from './pdf-text.ts';

/**
 * Sentences about what a PDF's text lacks, for the person who reads its row; empty where nothing is missing.
 *
 * @example
 * ```ts
 * pdfDoubts({ unread_letters: 0, letters: 90, pages: [], picture_pages: [3] }); // ['Pages that are pictures without text: 3.']
 * ```
 */
export function pdfDoubts(lost: LostText): string[] {
  const { unread_letters, doubtful_letters = 0, letters, pages, picture_pages, missing_pages } = lost;
  return [
    ...(unread_letters > 0
      ? [`Nothing tells ${unread_letters} of its ${letters} letters, on pages ${listed(pages)}.`]
      : []),
    ...(doubtful_letters > 0
      ? [
          `Of its ${letters} letters ${doubtful_letters} may be others or out of order, on pages ${listed(pages)}: glyphs of joined letters, for which the file gives no text that can be read.`,
        ]
      : []),
    ...(picture_pages.length > 0 ? [`Pages that are pictures without text: ${listed(picture_pages)}.`] : []),
    ...(missing_pages
      ? [`Its text ends before page ${missing_pages.from} of ${missing_pages.to}, at the most that can be read.`]
      : []),
  ];
}

const mostListed = 10;

function listed(pages: readonly number[]): string {
  const more = pages.length > mostListed ? ' and more' : '';
  return `${pages.slice(0, mostListed).join(', ')}${more}`;
}
