/** A link of a source, with the place where people find it there. */
export interface SourceLink {
  url: string;
  /** Such as `Jobs!B7`, or the address of the page that has it. */
  place: string;
}

/** The links of one read of a source, and the cursor for the next read. */
export interface SourceRead<Cursor> {
  links: SourceLink[];
  cursor: Cursor;
  /** Whether more can be read at once. */
  more: boolean;
  /** Cells that show an error in the place of a link, those that were so before included. */
  broken?: BrokenCells;
}

/** Cells without a link that were meant to have one. */
export interface BrokenCells {
  count: number;
  /** The first of them: what it shows, and where. */
  text: string;
  place: string;
}

// An address ends before what no address has unescaped: blanks of any width, those of none included, quotation marks, dashes
// between sentences, and the punctuation of Chinese, Japanese, Arabic and the scripts of India.
const webAddress =
  /https?:\/\/[^\s<>"'`{}|\\^\u00ad\u060c\u061b\u061f\u06d4\u0964\u0965\u180e\u200b-\u200f\u2014\u2015\u2018-\u201f\u2026\u202a-\u202e\u2039\u203a\u2060-\u206f\u00ab\u00bb\u3001-\u3003\u3008-\u3011\u3014-\u301f\uff01\uff08\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff3b\uff3d\uff5b\uff5d\uff5e\uff61-\uff65]+/gi;
const openers: Record<string, string> = { ')': '(', ']': '[' };

/**
 * The web addresses in a text, in their order, each as it is written there but for what closes a sentence or a bracket.
 *
 * @example
 * ```ts
 * textLinks('See https://example.com/a, or (https://example.com/b).'); // both, without comma, bracket and full stop
 * ```
 */
export function textLinks(text: string): string[] {
  return (text.match(webAddress) ?? []).map(withoutEnd).filter((url) => URL.canParse(url));
}

/**
 * The links behind a text and those that are written in it, each once: one that was made of a written address, full stop and
 * all, is the written one.
 *
 * @example
 * ```ts
 * linksOf(['https://example.com/a.'], 'See https://example.com/a.'); // ['https://example.com/a']
 * ```
 */
export function linksOf(behind: readonly string[], text: string): string[] {
  const written = textLinks(text);
  const plain = behind.map((url) => {
    const [bare = url] = textLinks(url);
    return written.includes(bare) ? bare : url;
  });
  return [...new Set([...plain, ...written])];
}

/** A cell may have 50,000 characters, and all of them may be of those that close something. */
function withoutEnd(url: string): string {
  const counts: Record<string, number> = {};
  for (const sign of '()[]') counts[sign] = count(url, sign);
  let end = url.length;
  for (let last = url[end - 1]; last !== undefined; last = url[end - 1]) {
    const opener = openers[last];
    const isBare = opener !== undefined && (counts[opener] ?? 0) < (counts[last] ?? 0);
    if (!isBare && !/[.,;:!?*_~]/.test(last)) break;
    if (isBare) counts[last] = (counts[last] ?? 0) - 1;
    end--;
  }
  return url.slice(0, end);
}

function count(text: string, part: string): number {
  return text.split(part).length - 1;
}
