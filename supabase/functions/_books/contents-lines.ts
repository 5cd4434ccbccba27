import { excerpt } from '../_millrace/mod.ts';
import { readPrintedNumber } from './printed-number.ts';

/** Only the beginning of a longer line is read: no line of a table of contents is as long. */
const longestLine = 500;
const fewestDots = 3;
const fewestBlanks = 3;
const dotRuns = ['...', '. . .', '.. .', '. ..', '…'];
const longestBlur = 80;
const isDot = /[.…·•_‥⋅]/;
const isNumberPart = /[\p{L}\p{N}]/u;

/** What a line of a table of contents says. */
export interface ContentsLine {
  title: string;
  printed_page: string;
  /** Whether dots lead from title to number. Without them the number may belong to the title. */
  dotted: boolean;
}

/** Reads a line that ends in a page number, with dots before it or without; null for any other line. */
export function readLineEnd(line: string): ContentsLine | null {
  const text = excerpt(line, longestLine).trimEnd();
  let start = text.length;
  while (start > 0 && text.length - start < 12 && isNumberPart.test(text.charAt(start - 1))) start--;
  const printed_page = text.slice(start);
  if (!readPrintedNumber(printed_page)) return null;
  let end = start;
  let dots = 0;
  for (; end > 0; end--) {
    const before = text.charAt(end - 1);
    if (isDot.test(before)) dots += before === '…' ? fewestDots : 1;
    else if (!/\s/.test(before)) break;
  }
  const title = text.slice(0, end).trim();
  // A number that is part of a word, as in x86 or 2.3, is no page number.
  if (end === start || !/\p{L}/u.test(title) || (dots > 0 && !/\s/.test(text.charAt(start - 1)) && dots < fewestDots)) {
    return null;
  }
  // So many blanks count as dots.
  if (dots >= fewestDots || start - end >= fewestBlanks + 2 * dots) return { title, printed_page, dotted: true };
  const blurred = blurredLeaders(title);
  return { title: blurred ?? title, printed_page, dotted: blurred !== null };
}

/** Finds the title before dots that were partly misread as letters, as on images: "Red ...oo 4"; null where there are none. */
function blurredLeaders(title: string): string | null {
  const starts = dotRuns.map((run) => title.indexOf(run)).filter((at) => at > 0);
  const start = Math.min(...starts);
  if (starts.length === 0 || title.length - start > longestBlur || /\p{Lu}\p{Ll}/u.test(title.slice(start)))
    return null;
  const before = title.slice(0, start).trim();
  return /\p{L}/u.test(before) ? before : null;
}

/** Reads a line of a table of contents: title, leaders, page number; null for any other line. */
export function readContentsLine(line: string): { title: string; printed_page: string } | null {
  const found = readLineEnd(line);
  return found?.dotted ? { title: found.title, printed_page: found.printed_page } : null;
}

const contentsTitle =
  /^(?:(?:table of|brief|short|detailed|summary of)\s+)?contents(?:\s+(?:in brief|in detail|at a glance))?$|^(?:inhalt(?:sverzeichnis|sübersicht)?|sommaire|table des matières|índice(?: general)?|indice|inhoud(?:sopgave)?|sumário)$/i;
const otherListTitle =
  /^(?:list of (?:figures|tables|examples|listings|algorithms|illustrations|procedures|equations|plates|maps|code)(?: and \p{L}+)?|abbildungsverzeichnis|tabellenverzeichnis|table des figures|liste des (?:figures|tableaux))$/iu;

/** Says whether a line is the title of a table of contents. */
export function isContentsTitle(text: string): boolean {
  return text.length <= 60 && contentsTitle.test(bareTitle(text));
}

/** Says whether a line is the title of a list of figures or the like, which looks like contents. */
export function isOtherListTitle(text: string): boolean {
  return text.length <= 60 && otherListTitle.test(bareTitle(text));
}

/** Says whether a line of the contents says nothing: a number alone, or a column's heading. */
export function isPageFurniture(text: string): boolean {
  return readPrintedNumber(text) !== null || /^(?:page|chapter|section|title|seite|kapitel)s?$/i.test(bareTitle(text));
}

function bareTitle(text: string): string {
  return excerpt(text, longestLine).trim().replace(/\s+/g, ' ').replace(/[.:]$/, '');
}
