import type { PageRow } from './page-rows.ts';
import { alikeKeys, titleKey } from './titles.ts';

// A title may run over so many lines; a longer line than this is running text.
const mostLines = 3;
const longestLine = 160;
// A shorter title could just as well be the beginning of a sentence.
const shortestRunIn = 8;

/** All that may be a title on a page, by key: each line, and each two or three consecutive lines. */
interface Titles {
  counts: Map<string, number>;
  lines: string[];
  isRough: boolean;
}

/** Says on which pages a title stands on lines of its own. It remembers what it has read of a page. */
export class PageTitles {
  readonly #pages: Map<number, PageRow>;
  readonly #read = new Map<number, Titles>();

  constructor(pages: readonly PageRow[]) {
    this.#pages = new Map(pages.map((page) => [page.number, page]));
  }

  /** Counts how often a title with this key stands on a page. */
  count(page: number, key: string): number {
    return key === '' ? 0 : (this.#titlesOf(page).counts.get(key) ?? 0);
  }

  /** Says whether the title stands there with misread letters, as on an image, or followed by text on its line. */
  hasAlike(page: number, key: string): boolean {
    const { lines, isRough } = this.#titlesOf(page);
    const runsIn = key.length >= shortestRunIn;
    return lines.some((line) => (runsIn && line.startsWith(key)) || (isRough && alikeKeys(line, key)));
  }

  #titlesOf(page: number): Titles {
    const known = this.#read.get(page);
    if (known) return known;
    const blend = this.#pages.get(page)?.blend_result;
    const texts = (blend?.lines ?? []).map(({ text }) => text).filter((text) => text.length <= longestLine);
    const lines = texts.map(titleKey);
    const counts = new Map<string, number>();
    for (let first = 0; first < texts.length; first++) {
      // A title's number may stand on a line of its own, and so may the word "Chapter".
      for (let count = 1; count <= mostLines && first + count <= texts.length; count++) {
        const joined = count === 1 ? (lines[first] ?? '') : titleKey(texts.slice(first, first + count).join(' '));
        counts.set(joined, (counts.get(joined) ?? 0) + 1);
      }
    }
    const titles = { counts, lines, isRough: blend?.readings[0] === 'ocr' };
    this.#read.set(page, titles);
    return titles;
  }
}
