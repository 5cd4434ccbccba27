/** A link of a source, with the place where people find it there. */
export interface SourceLink {
  url: string;
  /** Such as `Jobs!B7`, or the address of the page that has it. */
  place: string;
}

/** What one read of a source has brought, and from where the next goes on. */
export interface SourceRead<Cursor> {
  links: SourceLink[];
  cursor: Cursor;
  /** Whether more can be read at once. */
  more: boolean;
}

const webAddress = /https?:\/\/[^\s<>"'`{}|\\^]+/gi;
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
