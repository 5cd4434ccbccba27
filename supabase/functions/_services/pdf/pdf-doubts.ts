/** Parts of a PDF that its text lacks. */
export interface LostText {
  unread_letters: number;
  letters: number;
  /** Letters that may be others, or stand in another order; given where there are any. */
  doubtful_letters?: number | undefined;
  /** The first 100 pages with letters that nothing tells, or that are doubtful, from 1. */
  pages: number[];
  /** The first 100 pages that are pictures without text. */
  picture_pages: number[];
  /** Pages that were not read, since the text had reached its bound before them. */
  missing_pages?: { from: number; to: number } | undefined;
}

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
          `Of its ${letters} letters ${doubtful_letters} may be others or out of order, on pages ${listed(pages)}: glyphs of joined letters or of an old font, for which the file gives no text that can be read.`,
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
