// How a book's outline is joined of its contents, headings and page numbers.
import { describe, expect, test } from 'vitest';
import { findHeadings } from '../../supabase/functions/_books/heading-pattern.ts';
import { joinOutline } from '../../supabase/functions/_books/outline.ts';
import type { PageRow } from '../../supabase/functions/_books/page-rows.ts';
import { titleKey, titleKeys } from '../../supabase/functions/_books/titles.ts';

describe('an outline', () => {
  const contents = (entries: [string, string][]) => ({
    first_page: 2,
    last_page: 2,
    agreement: 1,
    entries: entries.map(([title, printed_page]) => ({ title, level: 1, printed_page, page: null })),
  });
  const evidence = { agreement: 1, file: [] };
  const runs = [{ style: 'arabic' as const, first_page: 3, last_page: 20, offset: 2 }];

  test('puts an entry where its heading stands, else where its number leads, and headings below their chapter', () => {
    const headings = [
      { page: 2, level: 1, text: 'Contents', scale: 1.6 },
      { page: 3, level: 1, text: 'Chapter 1 – The Small Bell', scale: 1.6 },
      { page: 4, level: 2, text: 'Of tin', scale: 1.1 },
    ];
    const joined = joinOutline(
      contents([
        ['1 The Small Bell', '1'],
        ['2 The Rope', '5'],
        ['Colophon', ''],
      ]),
      headings,
      runs,
      [],
      evidence,
    );
    expect(joined.outline).toEqual([
      { title: '1 The Small Bell', level: 1, page: 3, label: '1', sources: ['contents', 'headings'] },
      { title: 'Of tin', level: 2, page: 4, label: '2', sources: ['headings'] },
      { title: '2 The Rope', level: 1, page: 7, label: '5', sources: ['contents'] },
    ]);
    expect(joined.unplaced).toEqual(['Colophon']);
    expect(joined.confidence).toBeLessThan(0.7);
  });

  test('takes no piece, no label, no note and no word of a picture for a section, and says what it left out', () => {
    const on = (page: number, text: string, x = 50, size = 12) => ({ page, text, x, size });
    const lines = [
      on(3, 'ONE', 50, 16),
      on(3, 'The Small Bell and how', 50, 16),
      on(3, 'it is cast', 50, 16),
      ...[4, 5, 6].map((page) => on(page, `Of copper ${'abc'.charAt(page - 4)}`)),
      on(5, 'Clapper', 213),
      on(6, 'Note'),
      on(7, 'TWO', 50, 16),
      on(7, 'The Rope', 50, 16),
      ...[3, 5, 7].map((page) => on(page, 'Hint for founders')),
    ];
    const pages = Array.from({ length: 8 }, (_, at): PageRow => {
      const own = lines.filter(({ page }) => page === at + 1);
      const small = Array.from({ length: 8 }, () => ({ text: 'and then the text goes on', x: 50, size: 10 }));
      const text = [...own, ...small];
      const blend = text.map((line, place) => ({ text: line.text, x: line.x, size: line.size, y: 20 * place }));
      return {
        number: at + 1,
        blend_result: { text: '', lines: blend, confidence: 1, readings: ['text_layer'], replaced: 0 },
        label_result: { running_head: null, page_label: null, first_footnote: null, headings: own.map((l) => l.text) },
      };
    });
    const entries: [string, string][] = [
      ['1 The Small Bell and how it is cast', '1'],
      ['2 The Rope', '5'],
    ];
    const joined = joinOutline(contents(entries), findHeadings(pages), runs, pages, evidence);
    expect(joined.outline.map(({ title }) => title)).toEqual([
      '1 The Small Bell and how it is cast',
      ...['Of copper a', 'Of copper b', 'Of copper c'],
      '2 The Rope',
    ]);
    expect(joined.left_out).toEqual([
      ...[
        'ONE',
        'The Small Bell and how',
        'it is cast',
        'Hint for founders',
        'Clapper',
        'Hint for founders',
        'Note',
        'TWO',
      ],
      'Hint for founders',
    ]);
    expect(joined.confidence).toBe(1);
  });

  test('misses no heading without a number in contents that number all of its kind', () => {
    const titles = ['1 The Bell', '1.1 Of tin', '1.2 Of lead', '1.3 Of iron', '2 The Rope', '2.1 Of hemp'];
    const found = titles.map((text, at) => ({ page: 3 + at, level: /\./.test(text) ? 2 : 1, text, scale: 1.2 }));
    const extra = (text: string) => [...found, { page: 6, level: 2, text, scale: 1.2 }];
    const rated = (of: typeof titles, text: string) => {
      const printed = of.map((title, at): [string, string] => [title, `${at + 1}`]);
      const bare =
        of === titles ? extra(text) : extra(text).map((one) => ({ ...one, text: one.text.replace(/^\d\.\d /, '') }));
      return joinOutline(contents(printed), bare, runs, [], evidence).confidence;
    };
    expect(rated(titles, 'Terms and Conditions')).toBe(1);
    expect(rated(titles, '1.4 Of clay')).toBeLessThan(0.97);
    // An appendix's letter is a number too.
    const appendices = [...titles.slice(0, 4), 'A Tools for Bells', 'B Signs of Wear'].map((title) =>
      title.replace(/^1\.(?=\d)/, ''),
    );
    const plain = (text: string) =>
      [...appendices, text].map((one, at) => ({ page: 3 + at, level: 1, text: one, scale: 1.2 }));
    const printed = appendices.map((title, at): [string, string] => [title, `${at + 1}`]);
    expect(joinOutline(contents(printed), plain('References'), runs, [], evidence).confidence).toBe(1);
    expect(joinOutline(contents(printed), plain('C Marks of Founders'), runs, [], evidence).confidence).toBeLessThan(
      0.97,
    );
    const unnumbered = titles.map((title) => title.replace(/^\d\.\d /, ''));
    expect(rated(unnumbered, 'Terms and Conditions')).toBeLessThan(0.97);
  });

  test('misses no part of a chapter without a number, such as a licence, in contents that number most', () => {
    const chapters = ['1 The Bell', '1.1 Of tin', 'Bells in Print', '1.2 Of lead', '1.3 Of iron'];
    const level = (text: string) => (/^\d |^Licence/.test(text) ? 1 : 2);
    const headingOf = (text: string, page: number) => ({ page, level: level(text), text, scale: 1.2 });
    const rated = (titles: string[]) => {
      const found = titles.map((text, at) => headingOf(text, 3 + at));
      const parts = ['Preamble', 'Terms and Conditions'].map((text) => headingOf(text, 3 + titles.length));
      const printed = titles.map((title, at): [string, string] => [title, `${at + 1}`]);
      return joinOutline(contents(printed), [...found, ...parts], runs, [], evidence).confidence;
    };
    const more = ['2 The Rope', '3 The Clapper'];
    expect(rated([...chapters, ...more, 'Licence'])).toBe(1);
    expect(rated([...chapters, 'Licence', ...more])).toBeLessThan(0.97);
    const unnumbered = chapters.map((title) => title.replace(/^\d\.\d /, ''));
    expect(rated([...unnumbered, ...more, 'Licence'])).toBeLessThan(0.97);
  });

  test('confirms a short title that its text follows on the line, where the same number stands before both', () => {
    const page = (number: number, text: string): PageRow => ({
      number,
      blend_result: {
        lines: [{ text, size: 10, x: 50, y: 80 }],
        text,
        confidence: 1,
        readings: ['text_layer'],
        replaced: 0,
      },
      label_result: null,
    });
    const rated = (text: string) =>
      joinOutline(contents([['1.1.1 FpX', '1']]), [], runs, [page(3, text)], evidence).confidence;
    expect(rated('1.1.1 FpX. Let p be a number that is given')).toBe(1);
    expect(rated('1.1.2 FpX. Let p be a number that is given')).toBe(0);
    expect(rated('FpX and its kin are given by a number')).toBe(0);
  });

  test('leaves out a few headings that go on as text, and rates many', () => {
    const printed: [string, string][] = [
      ['1 The Bell', '1'],
      ['2 The Rope', '5'],
    ];
    const chapters = printed.map(([text, page]) => ({ page: Number(page) + 2, level: 1, text, scale: 1.6 }));
    const running = ['Please note that what follows is not up to', 'A bell that is rung by more than one of the'];
    const stray = (text: string, at: number) => ({ page: 4 + at, level: 2, text, scale: 1.1 });
    const joined = (texts: string[]) =>
      joinOutline(contents(printed), [...chapters, ...texts.map(stray)], runs, [], evidence);
    expect(joined(running)).toMatchObject({ left_out: running, confidence: 1 });
    const many = [...running, 'No one of them can be taken for'];
    expect(joined(many).outline).toHaveLength(5);
    expect(joined(many).confidence).toBeLessThan(0.97);
    // An example in large letters brings several to its page.
    const onOnePage = (texts: string[]) =>
      joinOutline(contents(printed), [...chapters, ...texts.map((text) => stray(text, 0))], runs, [], evidence);
    expect(onOnePage(many)).toMatchObject({ left_out: many, confidence: 1 });
    const more = [...many, 'Nor can any of the others be rung by', 'And the last of them is heard by the'];
    expect(onOnePage(more).confidence).toBeLessThan(0.97);
    // As a second table of contents has them.
    expect(joined(['Contents', '2 The Rope']).left_out).toEqual(['Contents', '2 The Rope']);
    // The names of a program’s functions have their section’s number.
    const names = ['1.1.1 HASH_LOCK', '1.1.2 !hide [id|*]', '1.1.3 MAX_INT'];
    expect(joined(names)).toMatchObject({ left_out: [], confidence: 1 });
  });

  test('has titles without the marks of footnotes that stand on their page', () => {
    const titled = (heading: string, ...notes: string[]): PageRow => {
      const lines = [heading, 'The text of it.', ...notes].map((text, at) => ({
        text,
        size: at ? 10 : 16,
        x: 50,
        y: 20 * at,
      }));
      const [first_footnote = null] = notes;
      return {
        number: 1,
        blend_result: { text: '', lines, confidence: 1, readings: ['text_layer'], replaced: 0 },
        label_result: { running_head: null, page_label: null, first_footnote, headings: [heading] },
      };
    };
    const titleOf = (page: PageRow) => findHeadings([page])[0]?.text;
    expect(titleOf(titled('CSV format1', '1This material is based on another.'))).toBe('CSV format');
    expect(titleOf(titled('Bells†', '† Older than the tower.'))).toBe('Bells');
    expect(titleOf(titled('Notes on MP3', '1 Older than the tower.'))).toBe('Notes on MP3');
  });

  test('knows a title by its words where they begin with I or with an appendix’s letter', () => {
    expect(titleKey('I have several bells')).toBe('ihaveseveralbells');
    expect(titleKey('Civil bells')).toBe('civilbells');
    expect(titleKey('iv. Bells')).toBe('bells');
    expect(titleKeys('B Automating bells')).toEqual(['bautomatingbells', 'automatingbells']);
  });

  test('takes letters of the book’s own size for no heading on a page of smaller ones', () => {
    const page = (number: number, sizes: [string, number][]): PageRow => ({
      number,
      blend_result: {
        text: '',
        lines: sizes.map(([text, size], at) => ({ text, size, x: 50, y: 20 * at })),
        ...{ confidence: 1, readings: ['text_layer'], replaced: 0 },
      },
      label_result: {
        running_head: null,
        page_label: null,
        first_footnote: null,
        headings: ['It begins so', 'A Title'],
      },
    });
    const text = 'much of the text of this book is set in letters of this size, which are ten points high';
    const small = ['if ring then', 'pull', 'end', 'ring', 'stop'].map((code): [string, number] => [code, 8]);
    const code = page(2, [['It begins so', 10], ...small, ['A Title', 14]]);
    expect(
      findHeadings([
        page(1, [
          [text, 10],
          [text, 10],
        ]),
        code,
      ]).map((heading) => heading.text),
    ).toEqual(['A Title']);
  });

  test('is uncertain without contents, and more so without headings', () => {
    const headings = [{ page: 3, level: 1, text: 'The Small Bell', scale: 1.6 }];
    expect(joinOutline(null, headings, runs, [], evidence).confidence).toBe(0.5);
    expect(joinOutline(null, [], runs, [], evidence)).toEqual({
      outline: [],
      left_out: [],
      unplaced: [],
      confidence: 0.2,
    });
  });
});
