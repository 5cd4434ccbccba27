import { storableText } from '../_millrace/mod.ts';
import type { PageLine } from '../_pipelines/pages-results.ts';

// The length of a page where the text has no form feeds: about what a printed page holds.
const longestPage = 2500;

/** Divides a plain text into pages: at form feeds, or else between paragraphs. No pages when there is no text. */
export function splitPages(text: string): string[] {
  const clean = storableText(text).replace(/\r\n?/g, '\n');
  if (clean.trim() === '') return [];
  if (clean.includes('\f')) return clean.replace(/\f\s*$/, '').split('\f');
  const pages: string[] = [];
  let page = '';
  for (const paragraph of clean.split(/\n{2,}/).flatMap(shortParagraphs)) {
    if (page !== '' && page.length + paragraph.length > longestPage) {
      pages.push(page);
      page = '';
    }
    page += page === '' ? paragraph : `\n\n${paragraph}`;
  }
  return [...pages, page];
}

/** The lines of a page, each placed by its row; the size of their letters is unknown. */
export function plainLines(page: string): PageLine[] {
  return page
    .split('\n')
    .map((line, row) => ({ text: line.replace(/\s+/g, ' ').trim(), size: null, x: line.search(/\S/), y: row }))
    .filter(({ text }) => text !== '');
}

// Cuts a paragraph that is longer than a page between two words.
function shortParagraphs(paragraph: string): string[] {
  if (paragraph.length <= longestPage) return [paragraph];
  return paragraph.match(new RegExp(`[\\s\\S]{1,${longestPage}}(?=\\s|$)|[\\s\\S]{1,${longestPage}}`, 'g')) ?? [];
}
