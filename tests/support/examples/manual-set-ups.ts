// Manuals as different programs set them: where numbers stand, what leads to them, and what is printed around the text.
import { widthOf } from '../../../local/demo/samples/books/type-lines.ts';
import { leaderLine, left, type ManualEntry, type Piece, right, type SetUp } from './set-manual.ts';

const plain = (numbers: number[], title: string) => {
  const text = `${numbers.join('.')} ${title}`;
  return { listed: text, heading: [text] };
};
const centred = (text: string, y: number, size = 10): Piece => ({
  text,
  x: (left + right) / 2 - widthOf(text, size, 'roman') / 2,
  y,
  size,
});
const atRight = (text: string, y: number, size = 10): Piece => ({
  text,
  x: right - widthOf(text, size, 'roman'),
  y,
  size,
});
const atLeft = (text: string, y: number, size = 10): Piece => ({ text, x: left, y, size });
/** Chapters stand out, and have no dots. */
const chapterLine = (entry: ManualEntry, dots: string) =>
  entry.level === 1 ? { dots: '', indent: 0, bold: true } : { dots, indent: indentOf(entry) };
const indentOf = ({ level }: ManualEntry) => (level - 1) * 16;

/** LaTeX's article: sections without dots, what is below with them, the text right after the contents. */
const article: SetUp = {
  name: 'a LaTeX article',
  title: plain,
  headingSizes: [14, 12, 10.5, 10.5],
  chaptersOpenPages: false,
  romanFront: false,
  depth: 2,
  runsOn: true,
  contents: {
    heading: { text: 'Contents', x: left, y: 60, size: 14, bold: true },
    list: (entry, y) => leaderLine(entry, y, chapterLine(entry, ' . '), 13),
    leading: 13,
    last: 370,
  },
  around: ({ label }) => [centred(label, 560)],
};

/** LaTeX's book: front matter with roman numbers, chapters without dots, heads with the page's number, a list of figures. */
const book: SetUp = {
  name: 'a LaTeX book',
  title: (numbers, title) =>
    numbers.length === 1
      ? { listed: `${numbers[0]} ${title}`, heading: [`Chapter ${numbers[0]}`, title] }
      : plain(numbers, title),
  preface: 'Preface',
  depth: 3,
  parts: { 1: 'Part I. Things', 4: 'Part II. Work' },
  headingSizes: [20, 14, 12, 10.5],
  chaptersOpenPages: true,
  romanFront: true,
  contents: {
    heading: { text: 'Contents', x: left, y: 140, size: 20, bold: true },
    list: (entry, y) => leaderLine(entry, y, chapterLine(entry, ' .'), 15),
    leading: 15,
    last: 520,
  },
  figures: { heading: 'List of Figures', captions: ['1.1 The frame', '1.2 The bar', '2.1 A board', '3.1 The slab'] },
  around: ({ label, front, chapter, title, opens }) => {
    if (opens) return [centred(label, 560)];
    const head = front ? 'CONTENTS' : `CHAPTER ${chapter}. ${title.toUpperCase()}`;
    return Number(label) % 2 === 0 ? [atLeft(label, 50), atRight(head, 50)] : [atLeft(head, 50), atRight(label, 50)];
  },
  withOutline: true,
};

/** DocBook by way of FO: four levels with a dot after each number, and the page's number out of how many. */
const docbook: SetUp = {
  name: 'DocBook',
  title: (numbers, title) => {
    const text = `${numbers.join('.')}. ${title}`;
    return { listed: text, heading: [text] };
  },
  headingSizes: [20, 16, 14, 12],
  chaptersOpenPages: true,
  romanFront: false,
  contents: {
    heading: { text: 'Table of Contents', x: left, y: 90, size: 17, bold: true },
    list: (entry, y) => leaderLine(entry, y, { dots: '.', indent: indentOf(entry) }, 12),
    leading: 12,
    last: 520,
  },
  around: ({ label }) => [atLeft('The Hand Press', 40), atRight(`${label} / 19`, 560)],
};

/** A word processor: titles set in and without numbers, long ones over two lines, all numbers of a page after all titles. */
const word: SetUp = {
  name: 'a word processor',
  title: (_, title) => ({ listed: title, heading: [title] }),
  headingSizes: [18, 15, 13, 11.5],
  chaptersOpenPages: false,
  romanFront: false,
  contents: {
    heading: { text: 'Contents', x: left, y: 80, size: 18, bold: true },
    list: (entry, y) => leaderLine(entry, y, { dots: '', indent: indentOf(entry) }, 13),
    numbersLast: true,
    leading: 13,
    last: 530,
  },
  around: ({ label }) => [centred(`Page ${label} of 14`, 565)],
};

/** Sphinx: footers with the chapter's name, before or after the number; contents headed at the right. */
const sphinx: SetUp = {
  name: 'Sphinx',
  title: (numbers, title) =>
    numbers.length === 1
      ? { listed: `${numbers[0]} ${title}`, heading: ['CHAPTER', `${numbers[0]}`, title.toUpperCase()] }
      : plain(numbers, title),
  headingSizes: [22, 14, 12, 10.5],
  chaptersOpenPages: true,
  romanFront: true,
  contents: {
    heading: { text: 'CONTENTS', x: 300, y: 110, size: 14, bold: true },
    list: (entry, y) => leaderLine(entry, y, chapterLine(entry, ' .'), 12),
    leading: 12,
    last: 520,
  },
  around: ({ label, front, chapter, title, opens }) => {
    const foot = `Chapter ${chapter}. ${title}`;
    if (front || opens) return [atRight(label, 570)];
    return [
      atLeft('The Hand Press, Release 2', 40),
      Number(label) % 2 === 0 ? atLeft(`${label} ${foot}`, 570) : atRight(`${foot} ${label}`, 570),
    ];
  },
  withOutline: true,
};

/** A book of old: everything numbered in roman numerals, chapters too, and the text goes on from the front matter. */
const roman: SetUp = {
  name: 'roman numerals throughout',
  title: (numbers, title) =>
    numbers.length === 1
      ? { listed: `${['I', 'II', 'III', 'IV', 'V', 'VI'][(numbers[0] ?? 1) - 1]}. ${title}`, heading: [title] }
      : { listed: title, heading: [title] },
  headingSizes: [18, 14, 12, 11],
  chaptersOpenPages: true,
  romanFront: false,
  contents: {
    heading: { text: 'CONTENTS', x: 170, y: 90, size: 15 },
    list: (entry, y) =>
      leaderLine({ ...entry, label: romanOf(entry.label) }, y, { dots: ' .', indent: indentOf(entry) }, 13),
    leading: 13,
    last: 530,
  },
  around: ({ label, title }) => [centred(title.toUpperCase(), 45, 9), centred(romanOf(label), 565)],
};

/** A scan: pictures of pages that nobody has read yet. */
const scan: SetUp = {
  name: 'a scan',
  chapters: 1,
  firstNumber: 101,
  title: plain,
  headingSizes: [18, 15, 13, 12],
  chaptersOpenPages: false,
  romanFront: true,
  contents: {
    heading: { text: 'Contents', x: left, y: 80, size: 18, bold: true },
    list: (entry, y) => leaderLine(entry, y, { dots: '', indent: indentOf(entry) }, 15),
    leading: 15,
    last: 520,
  },
  around: ({ label }) => [centred(label, 565)],
  scanned: true,
};

/** Printed from a web page: contents without page numbers, and no numbers on the pages. */
const web: SetUp = {
  name: 'contents without page numbers',
  title: plain,
  headingSizes: [18, 15, 13, 11.5],
  chaptersOpenPages: true,
  romanFront: false,
  contents: {
    heading: { text: 'Table of contents', x: left, y: 80, size: 18, bold: true },
    list: (entry, y) => leaderLine({ ...entry, label: '' }, y, { dots: '', indent: indentOf(entry) }, 15),
    leading: 15,
    last: 520,
  },
  around: () => [],
};

export const setUps: SetUp[] = [article, book, docbook, word, sphinx, roman, scan, web];

/** The number as this set-up prints it. */
export function printedIn({ name }: SetUp, label: string): string {
  if (name === web.name) return '';
  return name === roman.name ? romanOf(label) : label;
}

function romanOf(label: string): string {
  const [tens, ones] = [Math.floor(Number(label) / 10), Number(label) % 10];
  return 'x'.repeat(tens) + (['', 'i', 'ii', 'iii', 'iv', 'v', 'vi', 'vii', 'viii', 'ix'][ones] ?? '');
}
