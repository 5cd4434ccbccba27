// The sample book: its pages as they are printed, for the PDF, for the demo and for tests to compare with.
import path from 'node:path';
import { contentsPage, freePage, type Page, setChapter } from './page-maker.ts';
import { type Chapter, readManuscript } from './read-manuscript.ts';

export interface SamplePage extends Page {
  /** Its place in the PDF, from 1. */
  number: number;
  /** `text`: a text layer; `scan`: an image only; `both`: an image, and a text layer with wrong letters. */
  kind: 'text' | 'scan' | 'both';
}

export interface SampleChapter {
  /** As the table of contents has it, without the chapter's number. */
  title: string;
  /** The page number printed there. */
  label: string;
  /** The page of the PDF where it begins. */
  page: number;
}

export interface SampleBook {
  title: string;
  subtitle: string;
  author: string;
  publisher: string;
  pages: SamplePage[];
  /** All that the table of contents lists, in its order. */
  chapters: SampleChapter[];
}

const roman = ['i', 'ii', 'iii', 'iv', 'v', 'vi', 'vii', 'viii'];

export const sampleBook: SampleBook = makeBook(path.join(import.meta.dirname, 'small-clocks'));

/** Returns the book as plain text, with a form feed between pages. */
export function sampleBookText(): string {
  return sampleBook.pages
    .map(({ head, lines, label }) => [head, ...lines, label].filter((line) => line !== undefined).join('\n'))
    .join('\n\f');
}

function makeBook(folder: string): SampleBook {
  const manuscript = readManuscript(folder);
  const { title, subtitle, author, publisher } = manuscript;
  const [preface, ...rest] = manuscript.chapters as [Chapter, ...Chapter[]];
  const glossary = rest.pop() as Chapter;

  const body: Page[] = [];
  const append = (chapter: Chapter, options: { number?: number; indent?: boolean } = {}) => {
    const before = body.length;
    const label = (index: number) => String(before + index + 1);
    body.push(...setChapter(chapter, { ...options, heads: [title, chapter.title], label }));
  };
  rest.forEach((chapter, index) => {
    append(chapter, { number: index + 1 });
  });
  append(glossary, { indent: false });
  append(makeIndex(manuscript.indexTerms, body), { indent: false });

  const prefacePages = setChapter(preface, {
    heads: [preface.title, preface.title],
    label: (index) => roman[index + 3] as string,
  });
  const opening = [...prefacePages, ...body].filter(({ heading }) => heading !== undefined);
  const entries = opening.map(({ heading = '', label = '' }, index) => {
    const numbered = index > 0 && index <= rest.length;
    return { text: numbered ? `${index} ${heading}` : heading, label };
  });
  const front = [titlePage(), imprintPage(), contentsPage(entries, roman[2] as string)];

  const pages = [...front, ...prefacePages, ...body].map((page, index): SamplePage => {
    const number = index + 1;
    const scanned = manuscript.scans.includes(number) ? 'scan' : 'text';
    return { ...page, number, kind: manuscript.bothReadings.includes(number) ? 'both' : scanned };
  });
  const chapters = pages
    .slice(front.length)
    .filter(({ heading }) => heading !== undefined)
    .map(({ heading = '', label = '', number }) => ({ title: heading, label, page: number }));
  return { title, subtitle, author, publisher, pages, chapters };

  function titlePage(): Page {
    return freePage([
      { text: title, y: 190, size: 24, face: 'bold' },
      { text: subtitle, y: 225, size: 14, face: 'italic' },
      { text: author, y: 300, size: 13, face: 'roman' },
      { text: publisher, y: 520, size: 11.5, face: 'roman' },
    ]);
  }

  function imprintPage(): Page {
    return freePage(
      manuscript.imprint.map((text, index) => ({ text, y: 400 + index * 15, size: 9, face: 'roman' as const })),
    );
  }
}

/** Returns where the terms occur in the pages set so far: `pendulum, 3, 7–9`. */
function makeIndex(terms: string[], pages: Page[]): Chapter {
  const texts = pages.map(({ lines }) => lines.join(' '));
  const blocks = terms.map((term): Chapter['blocks'][number] => {
    const pattern = new RegExp(`\\b${term}s?\\b`, 'i');
    const found = texts.flatMap((text, index) => (pattern.test(text) ? [index + 1] : []));
    const text = `${term}, ${ranges(found).join(', ')}`;
    return { kind: 'paragraph', words: text.split(' ').map((word) => ({ text: word, bold: false })) };
  });
  return { title: 'Index', blocks };
}

function ranges(numbers: number[]): string[] {
  const found: [first: number, last: number][] = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`));
}
