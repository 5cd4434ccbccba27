// Where the table of contents of a long book ends: its last page is short, or shared with what comes after.
import { describe, expect, test } from 'vitest';
import { rangeAgreement } from '../../supabase/functions/_books/contents-agreement.ts';
import { findContents } from '../../supabase/functions/_books/contents-pages.ts';

const page = (number: number, ...lines: string[]) => ({
  page: number,
  lines: lines.map((text, at) => ({ text, size: 10, x: 50, y: 80 + at * 14 })),
});
const dotted = (title: string, number: number | string) => `${title} . . . . . . . . . . ${number}`;
const entries = (from: number, to: number) =>
  Array.from({ length: Math.floor((to - from) / 12) }, (_, at) => dotted(`Section ${from + at * 12}`, from + at * 12));
const text = Array.from(
  { length: 30 },
  () => 'The bed of the press is moved by the rounce and then goes on in this line',
);
const afterwards = Array.from({ length: 4 }, (_, at) => page(8 + at, ...text));

const lastPages: [what: string, lines: string[]][] = [
  ['one entry alone', [dotted('Index', 601)]],
  ['two entries without dots', ['Bibliography 590', 'Index 601']],
  ['an entry over three lines', ['A very long title that goes', 'over several lines since it', dotted('is long', 590)]],
  ['a part and its chapters', ['Part IV', 'Appendices', dotted('Tools', 580), dotted('Signs', 590)]],
  ['an entry and a list of figures', [dotted('Index', 601), 'List of Figures', dotted('Fig 1', 3), dotted('Fig 2', 9)]],
  ['a running head with its number', ['CONTENTS xiii', dotted('Index', 601)]],
  ['a running head below the number', ['xiv', 'Contents', dotted('Index', 601)]],
  ['a running head below the book’s title', ['The Hand Press', 'Contents', dotted('Index', 601)]],
  ['an entry and then the text', [dotted('Index', 601), ...text]],
  [
    'an entry and then a text that speaks of its copyright',
    [dotted('Index', 601), ...text.slice(8), 'Copyright © 1998', 'All rights reserved'],
  ],
  ['entries without dots and then the text', ['Bibliography 590', 'Index 601', ...text]],
  ['a first number that was misread', [dotted('Signs', 90), dotted('Bibliography', 595), dotted('Index', 601)]],
];

describe('contents of other languages', () => {
  const titles = '目录 目次 目　次 Оглавление Índice Inhaltsverzeichnis المحتويات 목차 Περιεχόμενα İçindekiler'.split(
    ' ',
  );
  test.each(titles)('are found under %s, without dots too', (title) => {
    const lines = ['一 Ink 1', '二 Oil 9', '三 Rags 14', '四 Iron 22'];
    const pages = [page(2, title, ...lines), ...afterwards];
    expect(findContents(pages)).toMatchObject([{ first_page: 2, last_page: 2, titled: true }]);
  });

  test.each(['図目次', '插图目录', 'Список рисунков', 'Índice de figuras'])('are no list under %s', (title) => {
    expect(findContents([page(2, title, dotted('Fig', 1), dotted('Fig', 3), dotted('Fig', 9)), ...afterwards])).toEqual(
      [],
    );
  });
});

test('the imprint of a scan with specks is no table of contents', () => {
  const lines = [
    'Copyright © . . . . 1998',
    'ISBN 0 . . . 1999',
    'Printed in York . . . 2001',
    'First edition . . . 2004',
  ];
  expect(findContents([page(2, ...lines), ...afterwards])).toEqual([]);
  const others = lines.map((line) => line.replace(/^[^.]+/, 'Of ink '));
  expect(findContents([page(2, ...others), ...afterwards])).toMatchObject([{ first_page: 2 }]);
});

test('a second table that says the same as the first is no contradiction, and another is one', () => {
  const titles = (prefix: string) => Array.from({ length: 9 }, (_, at) => dotted(`${prefix} ${at + 1}`, 3 + at * 4));
  const first = page(5, 'Contents', ...titles('Of bells'));
  const agreement = (...lines: string[]) =>
    rangeAgreement({ first_page: 5, last_page: 5 }, [page(3, 'Contents', ...lines), page(4, ...text), first]);
  expect(agreement(...titles('Of bells').slice(2, 7))).toBe(1);
  expect(agreement(...titles('Of ropes').slice(2, 7))).toBe(0.5);
});

test('a short table that names appendices by their letters alone says the same as the full one', () => {
  const appendix = (before: string) =>
    ['A Tools', 'B Signs', 'C Marks'].map((title, at) => dotted(before + title, 60 + at * 9));
  const chapters = ['1 Bells', '2 Ropes'].map((title, at) => dotted(title, 3 + at * 9));
  const pages = (...short: string[]) => [
    page(3, 'Short Contents', ...short),
    page(4, ...text),
    page(5, 'Table of Contents', ...chapters, dotted('2.1 Of hemp', 14), ...appendix('Appendix ')),
  ];
  const agreement = (...short: string[]) => rangeAgreement({ first_page: 5, last_page: 5 }, pages(...short));
  expect(agreement(...chapters, ...appendix(''))).toBe(1);
  expect(agreement(...chapters, ...appendix('No '))).toBe(0.5);
});

describe('the last page of contents over three pages', () => {
  test.each(lastPages)('is found with %s', (_, lines) => {
    const pages = [page(5, 'Contents', ...entries(1, 280)), page(6, ...entries(290, 570)), page(7, ...lines)];
    expect(findContents([...pages, ...afterwards])).toMatchObject([{ first_page: 5, last_page: 7, titled: true }]);
  });

  test('is found after a page whose last number was read as a larger one', () => {
    const before = page(6, ...entries(290, 560), dotted('Misread', 5610));
    const pages = [page(5, 'Contents', ...entries(1, 280)), before, page(7, dotted('Index', 601)), ...afterwards];
    expect(findContents(pages)).toMatchObject([{ first_page: 5, last_page: 7 }]);
  });

  test.each([
    ['text', text],
    ['text that names years', ['Printing began in 1450 in', ...text]],
    ['a list of figures', ['List of Figures', dotted('Fig 1', 3), dotted('Fig 2', 900)]],
    [
      'a table of the next part, which counts anew',
      ['Part Two', 'Contents', dotted('Oil', 2), dotted('Ink', 9), dotted('Rags', 14)],
    ],
  ])('is not followed by %s', (_, lines) => {
    const pages = [page(5, 'Contents', ...entries(1, 280)), page(6, ...entries(290, 570)), page(7, ...lines)];
    expect(findContents([...pages, ...afterwards])[0]).toMatchObject({ first_page: 5, last_page: 6 });
  });
});
