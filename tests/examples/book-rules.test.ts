import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { misread } from '../../local/demo/samples/books/misread.ts';
import { sampleBook, sampleBookText } from '../../local/demo/samples/books/sample-book.ts';
import { blendReadings } from '../../supabase/functions/_books/blend-readings.ts';
import { makeDocument, toMarkdown } from '../../supabase/functions/_books/book-document.ts';
import { bodiesOf } from '../../supabase/functions/_books/contents-body.ts';
import { readContentsLine, readLineEnd } from '../../supabase/functions/_books/contents-lines.ts';
import { explainedShare, findRuns, labelOf, pageOf, pagesOf } from '../../supabase/functions/_books/number-runs.ts';
import { proposeLabels } from '../../supabase/functions/_books/page-layout.ts';
import { runsOf } from '../../supabase/functions/_books/page-numbers.ts';
import { headingFinder, partsOf } from '../../supabase/functions/_books/page-parts.ts';
import { plainLines, splitPages } from '../../supabase/functions/_books/plain-pages.ts';
import { type PrintedNumber, printNumber, readPrintedNumber } from '../../supabase/functions/_books/printed-number.ts';
import { readContents } from '../../supabase/functions/_books/read-contents.ts';
import { alikeTitles, titleKey } from '../../supabase/functions/_books/titles.ts';
import type { Reading } from '../../supabase/functions/_pipelines/pages-results.ts';
import { decodeText } from '../../supabase/functions/_services/text/decode-text.ts';
import { pageRows } from '../support/examples/small-book.ts';

describe('page numbers', () => {
  test('are read as they are printed, and words are none', () => {
    expect(readPrintedNumber('– 12 –')).toEqual({ style: 'arabic', value: 12 });
    expect(readPrintedNumber('Page 7')).toEqual({ style: 'arabic', value: 7 });
    expect(readPrintedNumber('XIV')).toEqual({ style: 'roman', value: 14 });
    for (const text of ['１２', '١٢', '۱۲', '१२', '(12)', '第12页', '12–15'])
      expect(readPrintedNumber(text)).toEqual({ style: 'arabic', value: 12 });
    expect(readPrintedNumber('2-1')).toEqual({ style: 'arabic', value: 1, prefix: '2-' });
    expect(readPrintedNumber('A-3')).toEqual({ style: 'arabic', value: 3, prefix: 'A-' });
    for (const text of ['mild', 'iiii', 'IiI', '1.2', 'a 3', '']) expect(readPrintedNumber(text)).toBeNull();
  });

  test('of either kind are read back as they were printed', () => {
    const number = fc.record({
      style: fc.constantFrom('roman' as const, 'arabic' as const),
      value: fc.integer({ min: 1, max: 3999 }),
    });
    fc.assert(
      fc.property(number, (given) => {
        expect(readPrintedNumber(printNumber(given))).toEqual(given);
      }),
    );
  });

  test('of chapters lead to pages by chapter', () => {
    const numbered = [1, 2].flatMap((chapter) =>
      [1, 2, 3].map((value) => ({
        page: chapter * 10 + value,
        printed: { style: 'arabic' as const, value, prefix: `${chapter}-` },
      })),
    );
    const runs = findRuns(numbered);
    expect(labelOf(22, runs)).toBe('2-2');
    expect(['1-3', '2-3'].map((text) => pageOf(readPrintedNumber(text) as PrintedNumber, runs))).toEqual([13, 23]);
  });

  test('make a pattern in spite of some that were misread', () => {
    const numbered = Array.from({ length: 30 }, (_, index) => {
      const page = index + 3;
      const printed =
        page <= 5
          ? { style: 'roman' as const, value: page }
          : { style: 'arabic' as const, value: page === 20 ? 75 : page - 5 };
      return { page, printed };
    });
    const runs = findRuns(numbered);
    expect(runs).toEqual([
      { style: 'roman', first_page: 3, last_page: 5, offset: 0 },
      { style: 'arabic', first_page: 6, last_page: 32, offset: 5 },
    ]);
    expect(explainedShare(numbered, runs)).toBeCloseTo(29 / 30);
    expect(labelOf(20, runs)).toBe('15');
    expect(pageOf({ style: 'arabic', value: 15 }, runs)).toBe(20);
    expect(pageOf({ style: 'roman', value: 4 }, runs)).toBe(4);
    // Beyond what has been read the pattern goes on.
    expect(pageOf({ style: 'arabic', value: 90 }, runs)).toBe(95);
    expect(labelOf(1, runs)).toBeNull();
  });
});

/** A page of contents whose lines begin at the same place. */
const bodyOf = (texts: string[]) => [
  { page: 3, lines: texts.map((text, row) => ({ text, size: 10, x: 50, y: 80 + row * 14 })) },
];

describe('page numbers at the edges of pages', () => {
  const withEdges = (number: number, first: string, last: string) => {
    const lines = [first, 'Some text of the page.', 'It goes on.', 'And on.', last].map((text, row) => ({
      text,
      size: 10,
      x: 50,
      y: row * 14,
    }));
    return { number, blend_result: blendReadings([{ by: 'text_layer', confidence: 1, lines }]), label_result: null };
  };

  test.each([
    [
      'beside the chapter’s name',
      (page: number) => (page % 2 ? `Chapter 9. Oil ${page + 80}` : `${page + 80} Chapter 9. Oil`),
      80,
    ],
    ['out of how many', (page: number) => `${page - 2} / 57`, -2],
    ['in a head that changes', (page: number) => `${page % 2}.${page}. A section ${page + 7}`, 7],
  ])('are told %s', (_, footer, ahead) => {
    const pages = Array.from({ length: 9 }, (_, at) => withEdges(at + 4, 'A Manual, Release 3', footer(at + 4)));
    expect(runsOf(pages)).toEqual([{ style: 'arabic', first_page: 4, last_page: 12, offset: -ahead }]);
  });

  test('that begin anew lead to several pages, and a gap of many pages parts what fits by chance', () => {
    const numbered = [1, 2, 3, 4, 11, 12, 13, 14].map((page) => ({
      page,
      printed: { style: 'arabic' as const, value: page % 10 },
    }));
    const runs = findRuns([...numbered, { page: 60, printed: { style: 'arabic', value: 60 } }]);
    expect(runs.map(({ first_page, last_page }) => [first_page, last_page])).toEqual([
      [1, 4],
      [11, 14],
    ]);
    expect(pagesOf({ style: 'arabic', value: 3 }, runs)).toEqual([3, 13]);
  });
});

describe('lines of a table of contents', () => {
  test.each([
    ['1 Winding . . . . . . . . 4', '1 Winding', '4'],
    ['Preface ........ iv', 'Preface', 'iv'],
    ['2.1  Of oil          17', '2.1  Of oil', '17'],
    ['第1章 はじめに⋯⋯⋯⋯１２', '第1章 はじめに', '１２'],
    ['第一章 总则……………… 3', '第一章 总则', '3'],
    ['Приложение . . . . . . A-3', 'Приложение', 'A-3'],
    ['Ink and oil ........ 2-1', 'Ink and oil', '2-1'],
    ['Ink and oil ........ (12)', 'Ink and oil', '(12)'],
    ['Ink and oil ........ 12–15', 'Ink and oil', '12–15'],
    ['مقدمة ........ ١٢', 'مقدمة', '١٢'],
    ['١٢ ........ مقدمة', 'مقدمة', '١٢'],
    ['۱ . ۲ مبانی . . . . . . . ۱۵', '۱ . ۲ مبانی', '۱۵'],
  ])('%j has title and page', (line, title, printed_page) => {
    expect(readContentsLine(line)).toEqual({ title, printed_page });
  });

  test.each(['He was born in 1931', 'Contents', '. . . . . 12', 'etc. etc. etc.'])('%j is none', (line) => {
    expect(readContentsLine(line)).toBeNull();
  });

  test.each(['How do I', 'Appendix C', 'x86', 'Part 1 of 2.3'])('%j ends in no page number', (line) => {
    expect(readLineEnd(line)).toBeNull();
  });

  test('are explained as a whole or not at all', () => {
    const lines = [
      'Contents',
      '1 A long title that runs',
      'over two lines ..... 1',
      '1.1 A part ..... 2',
      '2 Next ..... 9',
      'ii',
    ];
    const { entries, sure } = readContents(bodyOf(lines));
    expect(sure).toBe(true);
    expect(entries.map(({ title, level }) => [title, level])).toEqual([
      ['1 A long title that runs over two lines', 1],
      ['1.1 A part', 2],
      ['2 Next', 1],
    ]);
    expect(readContents(bodyOf(['A list without numbers', 'that says nothing', 'about pages'])).sure).toBe(false);
  });

  test('without dots are entries where their numbers fit among the others, and words of a title where not', () => {
    const lines = [
      'Contents',
      '1 Before 1900 3',
      '1.1 What came of it . . . . 4',
      '1.2 The press of 1850',
      'and its bar . . . . 9',
      '2 After 12',
      'A note on 7',
    ];
    const { entries } = readContents(bodyOf(lines));
    expect(entries.map(({ title, printed_page }) => [title, printed_page])).toEqual([
      ['1 Before 1900', '3'],
      ['1.1 What came of it', '4'],
      ['1.2 The press of 1850 and its bar', '9'],
      ['2 After', '12'],
    ]);
  });

  test('are not sure where the numbers of titles say that one is missing', () => {
    const lines = [
      '1 One . . . . 1',
      '1.1 Two . . . . 2',
      '1.3 Three . . . . 5',
      '2 Four . . . . 8',
      '2.1 Five . . . . 9',
    ];
    expect(readContents(bodyOf(lines)).sure).toBe(false);
    expect(readContents(bodyOf(lines.map((line) => line.replace('1.3', '1.2')))).sure).toBe(true);
  });

  test('are without the head of a page of the text, which looks like an entry', () => {
    const lines = [
      '1. The Bell 5',
      '7.3 Rope . . . . . 57',
      '7.4 Rags . . . . . 59',
      '1 The Bell',
      'It is old.',
      'And new.',
    ];
    const blend_result = {
      ...{ text: '', confidence: 1, readings: ['text_layer' as const], replaced: 0 },
      lines: lines.map((text, at) => ({ text, size: 10, x: 50, y: 80 + at * 14 })),
    };
    const label_result = { running_head: '1. The Bell', page_label: '5', headings: [], first_footnote: null };
    const runs = [{ style: 'arabic' as const, first_page: 1, last_page: 9, offset: 0 }];
    const [body] = bodiesOf([{ number: 5, blend_result, label_result }], runs);
    expect(body?.lines[0]?.text).toBe('7.3 Rope . . . . . 57');
  });

  test.each([['7.3 A title that fills its line'], ['7.3 A title that ends in 2']])(
    'have the number of a line that holds dots alone: %s',
    (title) => {
      const dots = ' . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . .';
      const texts = [`7.2 One${dots} 40`, title, `${dots} 42`, `7.4 Three${dots} 43`];
      const lines = texts.map((text, at) => ({ text, size: 10, x: 50, y: 80 + at * 14 }));
      const blend_result = blendReadings([{ by: 'text_layer', confidence: 1, lines }]);
      const bodies = bodiesOf([{ number: 3, blend_result, label_result: null }], []);
      const { entries, explained } = readContents(bodies);
      expect(entries[1]).toMatchObject({ title, printed_page: '42' });
      expect({ entries: entries.length, explained }).toEqual({ entries: 3, explained: 0.75 });
    },
  );

  test('are those of the contents alone, without lists of figures and the text that follows', () => {
    const text = [
      'The press stands on the floor',
      'and is made of oak and iron',
      'by whoever has the time',
      'and a good saw',
      'in the year 1900',
    ];
    const lines = [
      'Contents',
      '1 One 1',
      '2 Two 4',
      '3 Three 9',
      'List of Figures',
      '1 A saw . . . . 2',
      '2 A plane . . . . 3',
    ];
    expect(readContents(bodyOf(lines)).entries).toHaveLength(3);
    expect(readContents(bodyOf([...lines.slice(0, 4), ...text])).entries).toHaveLength(3);
  });

  test('go on after a title of more lines than a text begins with', () => {
    const title = ['1.2 Bells that', 'hang in towers', 'and are rung', 'by hand or by', 'a weight'];
    const rest = ['2 Ropes . . . . 9', '2.1 Hemp . . . . 9', '2.2 Flax . . . . 12'];
    const lines = [
      '1 Bells . . . . 1',
      '1.1 Small ones . . . . 1',
      ...title.slice(0, 4),
      `${title[4]} . . . . 4`,
      ...rest,
    ];
    const { entries, sure } = readContents(bodyOf(lines));
    expect(entries.map((entry) => entry.title)).toEqual([
      '1 Bells',
      '1.1 Small ones',
      title.join(' '),
      '2 Ropes',
      '2.1 Hemp',
      '2.2 Flax',
    ]);
    expect(sure).toBe(true);
  });

  test('are compared by their titles, whatever is printed before and after', () => {
    expect(titleKey('Chapter 3 – The Rope')).toBe(titleKey('3. THE ROPE'));
    expect(alikeTitles('3 The Large Bell', 'Chapter 3 – The Largc Bell')).toBe(true);
    expect(alikeTitles('The Large Bell', 'The Small Bell')).toBe(false);
  });
});

describe('what is what on a page', () => {
  test('is told by sizes and distances', () => {
    const opening = proposeLabels(pageRows(3), false);
    expect(opening).toMatchObject({ running_head: null, page_label: '1', headings: ['Chapter 1 – The Small Bell'] });
    const inside = proposeLabels(pageRows(8), false);
    expect(inside).toMatchObject({ running_head: 'The Rope', page_label: '6', headings: ['A worn strand'] });
  });

  test('keeps two headings apart that follow one another, and joins the lines of one', () => {
    const line = (text: string, size: number, at: number) => ({ text, size, x: 50, y: 80 + at * 14 });
    const of = (...titles: string[]) => [
      ...titles.map((title, at) => line(title, 14, at)),
      ...Array.from({ length: 6 }, (_, at) => line('and then the text goes on for a while', 10, at + 2)),
    ];
    expect(proposeLabels(of('5.4.1 Of bells', '5.4.2 Of ropes'), false).headings).toEqual([
      '5.4.1 Of bells',
      '5.4.2 Of ropes',
    ]);
    expect(proposeLabels(of('5.4.1 Of bells that', 'Hang in Towers'), false).headings).toHaveLength(1);
  });

  test('is told by form alone in plain text', () => {
    const [, , , , , , page = ''] = splitPages(sampleBookText());
    expect(proposeLabels(plainLines(page), false)).toEqual({
      running_head: 'The Keeping of Small Clocks',
      page_label: '2',
      headings: ['Sun, stove and draught'],
      first_footnote: expect.stringMatching(/^¹ Move one of them/),
    });
  });

  test('parts the body from what is around it', () => {
    const lines = ['The Rope', 'It is long.', 'It is old.¹', '¹ Older than the bell.', '6'].map((text) => ({
      text,
      size: null,
      x: null,
      y: null,
    }));
    const label = { running_head: 'The Rope', page_label: '6', headings: [], first_footnote: '¹ Older than the' };
    expect(partsOf({ lines }, label)).toEqual({
      body: ['It is long.', 'It is old.¹'],
      footnotes: ['¹ Older than the bell.'],
    });
    expect(partsOf({ lines }, null).body).toHaveLength(5);
  });

  test('finds a heading that runs over two lines, and none that does not stand there', () => {
    const lines = ['Moving House, and', 'Other Troubles', 'Text.'];
    expect(headingFinder(lines)('Moving house, and other troubles')).toEqual({ line: 0, count: 2 });
    expect(headingFinder(lines)('Moving')).toBeNull();
  });
});

describe('two readings of a page', () => {
  const reading = (by: Reading['by'], confidence: number, texts: string[]): Reading => ({
    by,
    confidence,
    lines: texts.map((text, row) => ({ text, size: 10, x: 0, y: row })),
  });

  test('become one that is better than either', () => {
    const blended = blendReadings([
      reading('ocr', 0.9, ['the b3ll hangs in the tower', 'and the bell is old']),
      reading('text_layer', 0.8, ['the bell hangs in thc t0wer', 'and tbe bell is old']),
    ]);
    expect(blended).toMatchObject({
      text: 'the bell hangs in the tower\nand the bell is old',
      readings: ['ocr', 'text_layer'],
      replaced: 1,
    });
    expect(blended.confidence).toBeLessThan(0.95);
  });

  test('of the sample book come out right by nine words of ten where one is spoilt', () => {
    for (const { lines, number } of sampleBook.pages.slice(5, 15)) {
      const spoilt = lines.map((line, index) => misread(line, number * 100 + index));
      const { text } = blendReadings([reading('text_layer', 0.97, spoilt), reading('ocr', 0.9, lines)]);
      const words = lines.join(' ').split(' ');
      const right = text.split(/\s/).filter((word, index) => word === words[index]).length;
      expect(right / words.length).toBeGreaterThan(0.9);
    }
  });

  test('of which one is empty are one', () => {
    const blended = blendReadings([reading('ocr', 0.9, ['a bell']), reading('text_layer', 0, [])]);
    expect(blended).toMatchObject({ text: 'a bell', readings: ['ocr'], confidence: 0.9 });
  });
});

describe('a document', () => {
  test('says nothing to Markdown or HTML that stood on a page', () => {
    const lines = [{ text: '<img src=x onerror=alert(1)> [a](b) # *c*', size: null, x: null, y: null }];
    const blend_result = { text: '', lines, confidence: 1, readings: ['plain_text' as const], replaced: 0 };
    const outline = [{ title: '<b>x</b>', level: 1, page: 1, label: null, sources: ['headings' as const] }];
    const facts = { title: 'T', metadata: null, outline_reviewed: false, outline };
    const markdown = toMarkdown(makeDocument([{ number: 1, blend_result, label_result: null }], facts));
    expect(markdown).toContain('\\<img src=x onerror=alert(1)\\>');
    expect(markdown).not.toMatch(/(?<!\\)<(?!\/?a\b)/);
  });

  test('shows a page that could not be read as one', () => {
    const facts = { title: 'T', metadata: null, outline_reviewed: false, outline: [] };
    const document = makeDocument([{ number: 1, blend_result: null, label_result: null }], facts);
    expect(document.pages[0]).toMatchObject({ read: false, anchor: 'page-1' });
    expect(toMarkdown(document)).toContain('could not be read');
  });
});

describe('a plain text', () => {
  test('is parted at its form feeds', () => {
    expect(splitPages('one\ftwo\f')).toEqual(['one', 'two']);
    expect(splitPages('\f\n ')).toEqual([]);
  });

  test('without form feeds loses nothing between its pages', () => {
    const paragraphs = fc.array(fc.stringMatching(/^[a-z ]{1,400}$/), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(paragraphs, (given) => {
        const text = given.join('\n\n');
        const pages = splitPages(text);
        expect(pages.join(' ').replace(/\s+/g, '')).toBe(text.replace(/\s+/g, ''));
        for (const page of pages) expect(page.length).toBeLessThanOrEqual(2600);
      }),
    );
  });

  test('in an older code is read all the same', () => {
    expect(decodeText(Buffer.from('Gl\xfcck', 'latin1')).text).toBe('Glück');
    expect(decodeText(Buffer.from('Glück')).text).toBe('Glück');
  });
});
