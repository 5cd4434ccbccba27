import type { PageRow } from './page-rows.ts';
import { alikeKeys, numbersOf, titleKey } from './titles.ts';

// A title may run over so many lines; a longer line than this is running text.
const mostLines = 3;
const longestLine = 160;
// A shorter title could just as well be the beginning of a sentence, unless a number such as "7.3.6" stands before both.
const shortestRunIn = 8;

/** All that may be a title on a page, by key: each line, and each two or three consecutive lines. */
interface Titles {
  counts: Map<string, number>;
  lines: { key: string; numbers: string }[];
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

  /** Says whether a title with this key stands there with misread letters, as on an image, or followed by text on its line. */
  hasAlike(page: number, key: string, title: string): boolean {
    const { lines, isRough } = this.#titlesOf(page);
    const numbers = sectionNumber(title);
    const runsIn = (line: { key: string; numbers: string }) =>
      (key.length >= shortestRunIn || (key !== '' && numbers !== '' && numbers === line.numbers)) &&
      line.key.startsWith(key);
    return lines.some((line) => runsIn(line) || (isRough && alikeKeys(line.key, key)));
  }

  #titlesOf(page: number): Titles {
    const known = this.#read.get(page);
    if (known) return known;
    const blend = this.#pages.get(page)?.blend_result;
    const texts = (blend?.lines ?? []).map(({ text }) => text).filter((text) => text.length <= longestLine);
    const lines = texts.map((text) => ({ key: titleKey(text), numbers: sectionNumber(text) }));
    const counts = new Map<string, number>();
    for (let first = 0; first < texts.length; first++) {
      // A title's number may stand on a line of its own, and so may the word "Chapter".
      for (let count = 1; count <= mostLines && first + count <= texts.length; count++) {
        const joined = count === 1 ? (lines[first]?.key ?? '') : titleKey(texts.slice(first, first + count).join(' '));
        counts.set(joined, (counts.get(joined) ?? 0) + 1);
      }
    }
    const titles = { counts, lines, isRough: blend?.readings[0] === 'ocr' };
    this.#read.set(page, titles);
    return titles;
  }
}

/** The number of several parts that a title begins with, such as "7.3.6"; empty where it has none. */
function sectionNumber(title: string): string {
  const numbers = numbersOf(title) ?? [];
  return numbers.length > 1 ? numbers.join('.') : '';
}
