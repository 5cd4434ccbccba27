// Fills pages from top to bottom, with running heads, page numbers and footnotes.
import type { Chapter, Word } from './read-manuscript.ts';
import { breakLines, type Face, type Line, type Piece, widthOf } from './type-lines.ts';

export const pageSize = { width: 419.53, height: 595.28 };
const left = 64;
const width = pageSize.width - 2 * left;
const type = { body: 11.5, leading: 17, note: 9, noteLeading: 11.5, head: 9.5 };
const firstBaseline = 76;
const lastBaseline = 530;

export interface Page {
  /** The number printed on it, none on title and imprint. */
  label?: string;
  /** The running head, none on the first page of a chapter. */
  head?: string;
  /** The title of the chapter that begins here. */
  heading?: string;
  /** The printed lines from top to bottom, without running head and page number. */
  lines: string[];
  pieces: Piece[];
  /** The thin line above footnotes, as a distance from the top. */
  noteRule?: number;
}

/** Returns a page with single lines of its own, such as a title page. */
export function freePage(rows: { text: string; y: number; size: number; face: Face }[]): Page {
  const pieces = rows.map((row) => ({ ...row, x: centred(row.text, row.size, row.face) }));
  return { lines: rows.map(({ text }) => text), pieces };
}

/** Returns the page of contents, with dotted leaders. */
export function contentsPage(entries: { text: string; label: string }[], label: string): Page {
  const page = openPage('Contents');
  entries.forEach(({ text, label: target }, index) => {
    const y = 190 + index * 22;
    const [name, number] = [widthOf(text, type.body, 'roman'), widthOf(target, type.body, 'roman')];
    const dot = widthOf(' .', type.body, 'roman');
    const dots = ' .'.repeat(Math.floor((width - name - number) / dot) - 1);
    const start = left + width - number;
    const body = { y, size: type.body, face: 'roman' as const };
    page.pieces.push({ ...body, text: `${text}${dots}`, x: left }, { ...body, text: target, x: start });
    page.lines.push(`${text}${dots} ${target}`);
  });
  addLabel(page, label);
  return page;
}

/** Sets a chapter, beginning on a page of its own. `labels` gives the printed number of its n-th page. */
export function setChapter(
  { title, blocks }: Chapter,
  options: {
    number?: number;
    heads: [even: string, odd: string];
    label: (index: number) => string;
    indent?: boolean;
  },
): Page[] {
  const pages: Page[] = [];
  let page: Page;
  let y = 0;
  let notes: Line[] = [];

  const room = (lines: number, added: Line[] = []) => {
    const count = notes.length + added.length;
    const forNotes = count > 0 ? count * type.noteLeading + 10 : 0;
    return y + (lines - 1) * type.leading <= lastBaseline - forNotes;
  };
  const close = () => {
    if (notes.length > 0) placeNotes(page, notes);
    addLabel(page, options.label(pages.length - 1));
    notes = [];
  };
  const open = () => {
    if (pages.length > 0) close();
    page = pages.length === 0 ? openPage(title, options.number) : { lines: [], pieces: [] };
    if (pages.length > 0) addHead(page, options.heads[pageParity(options.label(pages.length))]);
    y = pages.length === 0 ? 210 : firstBaseline;
    pages.push(page);
  };
  const place = (line: Line) => {
    page.pieces.push(...line.pieces.map((piece) => ({ ...piece, y })));
    page.lines.push(line.pieces.map(({ text }) => text).join(' '));
    y += type.leading;
  };

  open();
  let indent = 0;
  for (const block of blocks) {
    if (block.kind === 'heading') {
      if (y > firstBaseline) y += type.leading / 2;
      // A heading never ends a page: two lines of its text stay with it.
      if (!room(4)) open();
      place({ words: [], pieces: [{ text: block.text, x: left, size: 12.5, face: 'bold' }] });
      y += 3;
      indent = 0;
      continue;
    }
    for (const line of breakLines(block.words, { left, width, size: type.body, indent })) {
      const added = line.words.flatMap(({ note }) => (note ? setNote(note) : []));
      if (!room(1, added)) open();
      notes.push(...added);
      place(line);
    }
    indent = options.indent === false ? 0 : 16;
  }
  close();
  return pages;
}

function openPage(heading: string, number?: number): Page {
  const page: Page = { heading, lines: [], pieces: [] };
  if (number !== undefined) {
    const text = `Chapter ${number}`;
    page.pieces.push({ text, x: left, y: 110, size: 11.5, face: 'italic' });
    page.lines.push(text);
  }
  page.pieces.push({ text: heading, x: left, y: 142, size: 19, face: 'bold' });
  page.lines.push(heading);
  return page;
}

function setNote(words: Word[]): Line[] {
  return breakLines(words, { left, width, size: type.note, indent: 0 });
}

function placeNotes(page: Page, notes: Line[]): void {
  const top = lastBaseline - (notes.length - 1) * type.noteLeading;
  page.noteRule = top - 13;
  notes.forEach((line, index) => {
    page.pieces.push(...line.pieces.map((piece) => ({ ...piece, y: top + index * type.noteLeading })));
    page.lines.push(line.pieces.map(({ text }) => text).join(' '));
  });
}

function addHead(page: Page, head: string): void {
  page.head = head;
  page.pieces.unshift({ text: head, x: centred(head, type.head, 'italic'), y: 46, size: type.head, face: 'italic' });
}

function addLabel(page: Page, label: string): void {
  page.label = label;
  page.pieces.push({ text: label, x: centred(label, 10, 'roman'), y: 562, size: 10, face: 'roman' });
}

function pageParity(label: string): 0 | 1 {
  return Number(label) % 2 === 1 ? 1 : 0;
}

function centred(text: string, size: number, face: Face): number {
  return (pageSize.width - widthOf(text, size, face)) / 2;
}
