// Tables that fit the terminal: texts are cut first, then whole columns go, those that matter least first.

import measure from 'fast-string-truncated-width';
import pc from 'picocolors';
import { cut, visible } from '../../operators/visible.ts';

export interface Column {
  head: string;
  /** Whether the column is aligned to the right, as numbers are. */
  right?: boolean;
  /** To how many characters the column may be cut; left out, it is never cut. */
  least?: number;
  /** Whether its texts go on in the next line where they are too long: only for the last column. */
  wraps?: boolean;
  /** Columns leave a terminal that is too narrow by this number, the highest first; undefined: the column stays. */
  goes?: number;
}

const gap = 2;
const mostOfCell = 300;

/** Returns how many columns of the terminal a text takes. */
export const widthOf = (text: string) => measure(text).width;

/** Returns how wide the terminal is; nothing is cut where output goes elsewhere. */
export const terminalWidth = () => (process.stdout.isTTY ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY);

/** Returns a stranger's text in one line, with nothing in it that steers a terminal or hides. */
export const words = (text: unknown) =>
  text === null || text === undefined ? '' : visible(cut(String(text), mostOfCell)).replace(/\s+/g, ' ');

/** Returns a stranger's text as one word of a command line, to be pasted: quoted where a shell might read more in it. */
export const shellWord = (text: string) =>
  /^[\w.:/@%+=-]+$/.test(text) ? text : `'${words(text).replaceAll("'", "'\\''")}'`;

const graphemes = new Intl.Segmenter();

/** Returns how much of a text fits into a width, as an index into it. */
function indexAt(text: string, width: number): number {
  let taken = 0;
  for (const { segment, index } of graphemes.segment(text)) {
    taken += widthOf(segment);
    if (taken > width) return index;
  }
  return text.length;
}

/** Cuts a text to a width, with … at its end. */
export function clip(text: string, width: number): string {
  return widthOf(text) <= width ? text : `${text.slice(0, indexAt(text, width - 1))}…`;
}

/**
 * Lays out rows of cells in lines of at most `width`. `paint` colours a cell that is laid out already, so that colours count
 * nowhere.
 */
export function table(
  columns: Column[],
  rows: string[][],
  width: number,
  paint: (text: string, row: number, head: string) => string = (text) => text,
): string[] {
  const shown = fitted(columns, rows, width);
  const lay = (cells: string[], painted: (text: string, head: string) => string) =>
    shown
      .map(({ column, place, wide }) => {
        const text = clip(cells[place] ?? '', wide);
        const space = ' '.repeat(Math.max(0, wide - widthOf(text)));
        return column.right ? space + painted(text, column.head) : painted(text, column.head) + space;
      })
      .join(' '.repeat(gap))
      .trimEnd();
  return [
    lay(
      columns.map(({ head }) => head),
      (text) => pc.dim(text),
    ),
    ...rows.flatMap((cells, row) =>
      broken(cells, shown.at(-1)).map((part) => lay(part, (text, head) => paint(text, row, head))),
    ),
  ];
}

interface Shown {
  column: Column;
  place: number;
  wide: number;
}

/** Returns a row as several where its last cell is too long and may go on in the next line. */
function broken(cells: string[], last: Shown | undefined): string[][] {
  const text = cells[last?.place ?? 0] ?? '';
  if (!last?.column.wraps || widthOf(text) <= last.wide) return [cells];
  return wrap(text, last.wide).map((part, place) =>
    cells.map((cell, column) => (column === last.place ? part : place === 0 ? cell : '')),
  );
}

/** Breaks a text at its spaces, or within a word that is longer than the width. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (let rest = text; rest !== ''; ) {
    const index = indexAt(rest, width);
    const space = index < rest.length ? rest.lastIndexOf(' ', index) : -1;
    const end = space > index / 2 ? space : Math.max(index, 1);
    lines.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return lines;
}

/** Returns the columns that are shown and how wide each is. A column with nothing in it is left out. */
function fitted(columns: Column[], rows: string[][], width: number): Shown[] {
  let shown = columns
    .map((column, place) => ({
      column,
      place,
      wide: rows.reduce((most, cells) => Math.max(most, widthOf(cells[place] ?? '')), widthOf(column.head)),
    }))
    .filter(({ column, place }) => column.goes === undefined || rows.some((cells) => cells[place]));
  const taken = () => shown.reduce((sum, { wide }) => sum + wide + gap, -gap);
  const least = () => shown.reduce((sum, { column, wide }) => sum + Math.min(wide, column.least ?? wide) + gap, -gap);
  while (least() > width) {
    const [first] = shown.filter(({ column }) => column.goes !== undefined).sort(byGoing);
    if (!first) break;
    shown = shown.filter((other) => other !== first);
  }
  for (let over = taken() - width; over > 0; over = taken() - width) {
    const [widest] = shown
      .filter(({ column, wide }) => column.least !== undefined && wide > column.least)
      .sort((a, b) => b.wide - a.wide);
    if (!widest) break;
    widest.wide -= 1;
  }
  return shown;
}

const byGoing = (a: Shown, b: Shown) => (b.column.goes ?? 0) - (a.column.goes ?? 0);
