import { extractImages, extractText, getDocumentProxy, getMeta } from 'unpdf';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildSampleBook } from '../../local/demo/samples/books/build-pdf.ts';
import { sampleBook, sampleBookText } from '../../local/demo/samples/books/sample-book.ts';

const { pages, chapters } = sampleBook;
let pdf: Uint8Array;
let texts: string[];

beforeAll(async () => {
  pdf = await buildSampleBook();
  texts = (await extractText(await read(), { mergePages: false })).text;
});

/** Reading empties the bytes it is given. */
function read() {
  return getDocumentProxy(new Uint8Array(pdf));
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

const printed = ({ head, lines, label }: (typeof pages)[number]) => words([head, ...lines, label].join(' '));

describe('the sample book', () => {
  it('has at least 34 pages, no two alike, each with its own text', () => {
    expect(texts.length).toBe(pages.length);
    expect(pages.length).toBeGreaterThanOrEqual(34);
    expect(new Set(pages.map(({ lines }) => lines.join('\n'))).size).toBe(pages.length);
    expect(pages.map(({ number }) => number)).toEqual(pages.map((_, index) => index + 1));
  });

  it('names itself in the PDF, whose bytes are the same each time and few', async () => {
    expect((await getMeta(await read())).info).toMatchObject({ Title: sampleBook.title, Author: sampleBook.author });
    expect(Buffer.compare(await buildSampleBook(), pdf)).toBe(0);
    expect(pdf.length).toBeLessThan(1_500_000);
  });

  it('has all that is printed in the text layer of a text page', () => {
    for (const page of pages.filter(({ kind }) => kind === 'text')) {
      expect(words(texts[page.number - 1] as string)).toEqual(printed(page));
    }
  });

  it('has six scanned pages: an image and no text layer', async () => {
    const scans = pages.filter(({ kind }) => kind === 'scan');
    expect(scans.length).toBe(6);
    // Some of them begin a chapter, and some lie between two others.
    expect(scans.filter(({ heading }) => heading).length).toBeGreaterThan(0);
    for (const { number } of scans) {
      expect(texts[number - 1]?.trim()).toBe('');
      const [image, ...others] = await extractImages(await read(), number);
      expect([others.length, image?.width, image?.height]).toEqual([0, 816, 1157]);
    }
  });

  it('has two pages with two readings: an image, and a text layer with some letters wrong', async () => {
    const both = pages.filter(({ kind }) => kind === 'both');
    expect(both.length).toBe(2);
    for (const page of both) {
      const [right, layer] = [printed(page), words(texts[page.number - 1] as string)];
      const wrong = right.filter((word, index) => layer[index] !== word).length / right.length;
      expect(layer.length).toBe(right.length);
      expect(wrong).toBeGreaterThan(0.05);
      expect(wrong).toBeLessThan(0.25);
      expect((await extractImages(await read(), page.number)).length).toBe(1);
    }
  });

  it('lists in its table of contents each chapter with the page number printed where it begins', () => {
    const contents = pages.find(({ heading }) => heading === 'Contents');
    const listed = (contents?.lines ?? []).flatMap((line) => {
      const [, title, label] = /^(?:\d+ )?(.+?)(?: \.)+ (\w+)$/.exec(line) ?? [];
      return title ? [[title, label]] : [];
    });
    expect(listed).toEqual(chapters.map(({ title, label }) => [title, label]));
    for (const { title, label, page } of chapters) expect(pages[page - 1]).toMatchObject({ heading: title, label });
  });

  it('counts its pages in roman numerals, then from 1, with running heads but where a chapter begins', () => {
    const first = pages.findIndex(({ label }) => label === '1');
    expect(pages.slice(0, first).map(({ label }) => label)).toEqual([undefined, undefined, 'iii', 'iv', 'v']);
    expect(pages.slice(first).map(({ label }) => label)).toEqual(pages.slice(first).map((_, index) => `${index + 1}`));
    for (const { head, heading } of pages.slice(2)) expect(head === undefined).toBe(heading !== undefined);
  });

  it('sends the reader of its index to pages where the word stands', () => {
    const entries = pages.slice((chapters.at(-1)?.page ?? 0) - 1).flatMap(({ lines }) => lines);
    const [term, ...found] = entries.find((line) => line.startsWith('magnet,'))?.split(', ') ?? [];
    expect(found.length).toBeGreaterThan(0);
    for (const label of found) {
      expect(pages.find((page) => page.label === label)?.lines.join(' ')).toContain(term);
    }
  });

  it('comes as plain text too, with a form feed between pages', () => {
    const parts = sampleBookText().split('\f');
    expect(parts.map(words)).toEqual(pages.map(printed));
  });
});
