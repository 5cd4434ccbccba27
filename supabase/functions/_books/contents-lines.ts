import { excerpt } from '../_millrace/mod.ts';
import { readPrintedNumber } from './printed-number.ts';

/** Only the beginning of a longer line is read: no line of a table of contents is as long. */
const longestLine = 500;
const fewestDots = 3;
const fewestBlanks = 3;
const dotRuns = ['...', '. . .', '.. .', '. ..', '…'];
const longestBlur = 80;
const isDot = /[.…·•_‥⋅⋯・．]/;
const wideDots = /[…⋯]/;
/** A number at the end of a line: 12, xii, (12), 2-1, A-3, 12–15. */
const lastNumber = /[(（[［]?[\p{L}\p{N}]{1,12}(?:[-\u2010\u2011–—~〜]\p{N}{1,5})?[)）\]］]?$/u;
const firstNumber = /^(\p{N}{1,5})\s*([.…·•_‥⋅⋯・．\s]{3,})(.*\p{L}.*)$/u;
const dottedEnd = /[.…·•_‥⋅⋯・．]\s*[(（]?\p{N}{1,5}[)）]?$/u;
const rightToLeft = /[\p{Script=Arabic}\p{Script=Hebrew}]/u;

/** A line of a table of contents. */
export interface ContentsLine {
  title: string;
  printed_page: string;
  /** Whether dots lead from title to number. Without them the number may belong to the title. */
  dotted: boolean;
}

/** Reads a line that ends in a page number, with dots before it or without; null for any other line. */
export function readLineEnd(line: string): ContentsLine | null {
  const text = inOrder(excerpt(line, longestLine).trim());
  const printed_page = lastNumber.exec(text)?.[0] ?? '';
  const found = readPrintedNumber(printed_page) ? endAt(text, text.length - printed_page.length, printed_page) : null;
  if (found) return found;
  // The text before a hyphen may belong to the title: "Part 1-2" ends in 2 no more than x86 in 86.
  const bare = /[\p{L}\p{N}]{1,12}$/u.exec(text)?.[0] ?? '';
  return bare !== printed_page && readPrintedNumber(bare) ? endAt(text, text.length - bare.length, bare) : null;
}

/** A line from right to left may have its number first, in the order in which it is painted. Else that is the title's own number. */
function inOrder(text: string): string {
  const [, number, dots, title] = (rightToLeft.test(text) && !dottedEnd.test(text) && firstNumber.exec(text)) || [];
  return number && title ? `${title} ${dots} ${number}` : text;
}

function endAt(text: string, start: number, printed_page: string): ContentsLine | null {
  let end = start;
  let dots = 0;
  for (; end > 0; end--) {
    const before = text.charAt(end - 1);
    if (isDot.test(before)) dots += wideDots.test(before) ? fewestDots : 1;
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
  // "How do I", "Appendix C" and "Vitamin D" have no page.
  if (blurred === null && /^\p{Lu}$/u.test(printed_page)) return null;
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

/** In the languages that have letters of two cases, and in the others. */
const contentsTitle = new RegExp(
  `^(?:(?:(?:table of|brief|short|detailed|summary of)\\s+)?contents(?:\\s+(?:in brief|in detail|at a glance))?|${[
    'inhalt(?:sverzeichnis|sübersicht)?|sommaire|table des matières|índice(?: general| de contenidos?)?|indice(?: generale)?',
    'contenidos?|tabla de contenidos?|conteúdo|sumário|inhoud(?:sopgave)?|indholdsfortegnelse|innehåll(?:sförteckning)?|innhold',
    'sisällys(?:luettelo)?|spis treści|obsah|tartalom(?:jegyzék)?|cuprins|[iİ]çindekiler|kazalo|sadržaj|daftar isi|mục lục',
    'оглавление|содержание|зміст|съдържание|садржај|περιεχόμενα|目\\s*[录錄次]|目次|차례|목차|المحتويات|(?:فهرس|جدول) المحتويات|فهرس|فهرست',
    'תוכן(?: ה?עניינים)?|विषय[- ]?सूची|สารบัญ',
  ].join('|')})$`,
  'iu',
);
const otherListTitle = new RegExp(
  `^(?:list of (?:figures|tables|examples|listings|algorithms|illustrations|procedures|equations|plates|maps|code)(?: and \\p{L}+)?|${[
    'abbildungsverzeichnis|tabellenverzeichnis|table des figures|liste des (?:figures|tableaux)',
    '(?:lista|índice) de (?:figuras|tablas|tabelas|ilustraciones)|(?:elenco|indice) delle (?:figure|tabelle)',
    'список (?:иллюстраций|рисунков|таблиц)|[图圖図表](?:表)?目[录錄次]|插[图圖]目[录錄]|(?:그림|표) (?:차례|목차)',
  ].join('|')})$`,
  'iu',
);

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
