/** One line of a page's text layer. Lengths are in points, from the page's top left corner. */
export interface PdfLine {
  text: string;
  /** Size of the letters that most of the line is set in. */
  size: number;
  x: number;
  /** Of the base line. */
  y: number;
}

interface TextItem {
  str: string;
  transform: number[];
  width: number;
  height: number;
  hasEOL: boolean;
}

interface OpenLine {
  x: number;
  y: number;
  end: number;
  text: string;
  lettersBySize: Map<number, number>;
}

// Shares of the letters' size.
const sameLine = 0.5;
const wordGap = 0.15;
// How much wider than the usual distance of two lines parts paragraphs.
const paragraphGap = 1.3;

/** Joins the pieces of a page's text into lines, in the order they come in. `pageTransform` leads to the top left corner. */
export function readLines(items: readonly unknown[], pageTransform: number[]): PdfLine[] {
  const lines: PdfLine[] = [];
  let line: OpenLine | null = null;
  const close = () => {
    const text = line?.text.replace(/\s+/g, ' ').trim();
    if (line && text) lines.push({ text, size: mainSize(line.lettersBySize), x: round(line.x), y: round(line.y) });
    line = null;
  };
  for (const item of items.filter(isText)) {
    const [x, y] = place(item, pageTransform);
    const size = Math.hypot(item.transform[2] ?? 0, item.transform[3] ?? 0);
    // A blank is told by the gap it fills, whether or not the file has one there.
    if (item.str.trim() !== '') {
      if (line && Math.abs(y - line.y) > size * sameLine) close();
      line ??= { x, y, end: x, text: '', lettersBySize: new Map() };
      if (x - line.end > size * wordGap) line.text += ' ';
      line.text += item.str;
      line.end = x + item.width;
      const letters = item.str.trim().length;
      line.lettersBySize.set(round(size), (line.lettersBySize.get(round(size)) ?? 0) + letters);
    }
    if (item.hasEOL) close();
  }
  close();
  return lines;
}

/** The lines as text, with an empty line where one stands further from the last than lines usually do. */
export function joinLines(lines: readonly PdfLine[]): string {
  // In sizes of the letters, since notes are set closer than the text above them.
  const gaps = lines.slice(1).map((line, index) => {
    const last = lines[index] as PdfLine;
    return (line.y - last.y) / Math.max(line.size, last.size);
  });
  const usual = lowerQuartile(gaps.filter((gap) => gap > 0));
  return lines
    .map(({ text }, index) => {
      const gap = gaps[index - 1];
      if (gap === undefined) return text;
      const stands = gap > usual * paragraphGap || gap < 0;
      return stands ? `\n\n${text}` : `\n${text}`;
    })
    .join('');
}

function isText(item: unknown): item is TextItem {
  return typeof (item as TextItem).str === 'string';
}

function place(item: TextItem, [a = 1, b = 0, c = 0, d = 1, e = 0, f = 0]: number[]): [number, number] {
  const [, , , , x = 0, y = 0] = item.transform;
  return [a * x + c * y + e, b * x + d * y + f];
}

function mainSize(lettersBySize: Map<number, number>): number {
  return [...lettersBySize].reduce((best, entry) => (entry[1] > best[1] ? entry : best))[0];
}

// Gaps are never narrower than usual, and on a page of headings most of them are wider.
function lowerQuartile(values: number[]): number {
  const sorted = values.sort((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) / 4)] ?? 0;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
