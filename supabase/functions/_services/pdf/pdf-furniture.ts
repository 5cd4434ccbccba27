import type { PdfLine } from './pdf-lines.ts';

// A line at the edge of this many pages, the same but for its number, belongs to the pages and not to their text.
const fewestPages = 3;
const edgeLines = 2;
const longestEdge = 160;

/**
 * The pages' lines without running heads, footers and page numbers: the highest and the lowest two lines of a page that come
 * again at the same edge of other pages with the same words. A line in larger letters than `largest` stays.
 */
export function withoutFurniture(pages: readonly PdfLine[][], largest: number): PdfLine[][] {
  const edges = pages.map((lines) => edgesOf(lines).filter(({ line }) => line.size <= largest));
  const counts = new Map<string, number>();
  for (const page of edges) {
    for (const key of new Set(page.flatMap(({ keys }) => keys))) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return pages.map((lines, at) => {
    const repeated = edges[at]?.filter(({ keys }) => keys.some((key) => (counts.get(key) ?? 0) >= fewestPages)) ?? [];
    const furniture = new Set(repeated.map(({ line }) => line));
    return lines.filter((line) => !furniture.has(line));
  });
}

/** The lines at the edges, each with what it is alike by: its words, with the number that rises from page to page or without. */
function edgesOf(lines: readonly PdfLine[]): { line: PdfLine; keys: string[] }[] {
  const sorted = [...lines].sort((a, b) => a.y - b.y);
  const top = sorted.slice(0, edgeLines);
  const bottom = sorted.slice(edgeLines).slice(-edgeLines);
  const keyed = (line: PdfLine, edge: string) => ({ line, keys: keysOf(line).map((key) => `${edge} ${key}`) });
  return [...top.map((line) => keyed(line, 'top')), ...bottom.map((line) => keyed(line, 'bottom'))].filter(
    ({ line }) => line.text.length <= longestEdge,
  );
}

function keysOf({ text }: PdfLine): string[] {
  const words = text.trim().split(/\s+/);
  const isNumber = (word: string | undefined) => /^(?:\d{1,5}|[ivxlc]{1,7})$/i.test(word ?? '');
  // A number alone is the page's wherever others stand there; but a list may begin with one.
  const rest = isNumber(words.at(-1)) ? words.slice(0, -1) : isNumber(words[0]) ? words.slice(1) : words;
  const numbered = rest.length < words.length;
  return [words.join(' '), ...(numbered ? [`# ${rest.join(' ')}`] : [])];
}
