import type { PageRow } from './page-rows.ts';
import { alikeKeys, titleKey } from './titles.ts';

// A title may run over so many lines, and a line that is longer is text.
const mostLines = 3;
const longestLine = 160;
// A shorter title may begin a sentence.
const shortestRunIn = 8;

/** What may be a title on a page: each line, and each two and three that follow one another, by their keys. */
interface Titles {
  counts: Map<string, number>;
  lines: string[];
  isRough: boolean;
}

/** Says on which pages a title stands as lines of its own. What it has read of a page it keeps. */
export class PageTitles {
  readonly #pages: Map<number, PageRow>;
  readonly #read = new Map<number, Titles>();

  constructor(pages: readonly PageRow[]) {
    this.#pages = new Map(pages.map((page) => [page.number, page]));
  }

  /** How many times a title with this key stands on a page. */
  count(page: number, key: string): number {
    return key === '' ? 0 : (this.#titlesOf(page).counts.get(key) ?? 0);
  }

  /** Whether it stands there with other letters, as images are misread, or with text after it in its line. */
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
      // The number before a title may stand on a line of its own, and so may the chapter's word.
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
