import { expect, test } from 'vitest';
import { blendReadings } from '../../supabase/functions/_books/blend-readings.ts';
import { makeDocument, toMarkdown } from '../../supabase/functions/_books/book-document.ts';
import { entriesAgreement, rangeAgreement } from '../../supabase/functions/_books/contents-agreement.ts';
import { bodiesOf } from '../../supabase/functions/_books/contents-body.ts';
import { isContentsTitle, readLineEnd } from '../../supabase/functions/_books/contents-lines.ts';
import { findContents } from '../../supabase/functions/_books/contents-pages.ts';
import { contentsRange } from '../../supabase/functions/_books/contents-range.ts';
import { findHeadings } from '../../supabase/functions/_books/heading-pattern.ts';
import { joinOutline } from '../../supabase/functions/_books/outline.ts';
import { proposeLabels } from '../../supabase/functions/_books/page-layout.ts';
import { aroundNumber, runsOf } from '../../supabase/functions/_books/page-numbers.ts';
import type { PageRow } from '../../supabase/functions/_books/page-rows.ts';
import { plainLines, splitPages } from '../../supabase/functions/_books/plain-pages.ts';
import { printedEntries } from '../../supabase/functions/_books/printed-entries.ts';
import { readContents } from '../../supabase/functions/_books/read-contents.ts';
import { readTitlePage } from '../../supabase/functions/_books/title-page.ts';
import { alikeTitles, numbersOf } from '../../supabase/functions/_books/titles.ts';
import type { PageLine } from '../../supabase/functions/_pipelines/pages-results.ts';
import { growthFault, processorTime, sizedLines, type TextWork } from '../support/examples/growth.ts';

const mostPages = 3000;

function reading(by: 'ocr' | 'text_layer', lines: PageLine[]) {
  return { by, confidence: 1, lines };
}

function pageOf(number: number, lines: PageLine[]): PageRow {
  const text = lines.map((line) => line.text).join('\n');
  const blend = { text, lines, confidence: 1, readings: ['ocr' as const], replaced: 0 };
  return { number, blend_result: blend, label_result: proposeLabels(lines, true) };
}

/** A book whose pages were read on pictures; what it takes to make one is part of what is measured. */
function bookOf(text: string): PageRow[] {
  return splitPages(text)
    .slice(0, mostPages)
    .map((page, at) => pageOf(at + 1, sizedLines(page)));
}

/** Reads a book from its pages to the document; all of its text is taken for contents, and all of these are looked for. */
function readBook(pages: PageRow[]): unknown {
  const runs = runsOf(pages);
  const bodies = bodiesOf(pages, runs);
  const { entries } = readContents(bodies);
  const range = contentsRange({ first_contents_page: 1, last_contents_page: 1 }, bodies);
  const file = entries.map(({ title, level }, at) => ({ title, level, page: at + 1 }));
  const contents = {
    first_page: 1,
    last_page: 1,
    agreement: 1,
    entries: entries.map((entry) => ({ ...entry, page: null })),
  };
  const { outline } = joinOutline(contents, findHeadings(pages), runs, pages, { agreement: 1, file });
  const facts = { title: 'A book', metadata: null, outline_reviewed: false, outline };
  return [
    findContents(bodies),
    rangeAgreement(range, bodies),
    entriesAgreement(entries, bodies, { first_page: 1, last_page: mostPages }),
    printedEntries(entries, pages, { first_page: 1, last_page: mostPages }),
    readTitlePage(pages),
    toMarkdown(makeDocument(pages, facts)),
  ];
}

const works: Record<string, TextWork> = {
  'reading the end of a line': readLineEnd,
  'telling the title of contents': isContentsTitle,
  'reading a number beside a text': aroundNumber,
  'comparing titles': (text) => [alikeTitles(text, `x${text}`), numbersOf(text)],
  'parting a text into pages': (text) => splitPages(text).flatMap(plainLines),
  'blending two readings that differ': (text) =>
    blendReadings([
      reading('ocr', sizedLines(text)),
      reading('text_layer', sizedLines(text.split('').reverse().join(''))),
    ]),
  'blending two readings that are alike': (text) =>
    blendReadings([reading('ocr', sizedLines(text)), reading('text_layer', sizedLines(`x ${text}`))]),
  "reading a page's layout": (text) => proposeLabels(sizedLines(text), true),
  'reading contents': (text) => readContents([{ page: 1, lines: sizedLines(text) }]),
  'reading a book of one page': (text) => readBook([pageOf(1, sizedLines(text))]),
  'reading a book': (text) => readBook(bookOf(text)),
};

test.each(Object.entries(works))(
  'takes time in proportion to a text, whatever the text holds, %s',
  { timeout: 300_000 },
  async (_, work) => {
    expect(await growthFault(processorTime(work))).toBeNull();
  },
);
