import { z } from 'zod';
import { readContentsLine } from '../_books/contents-lines.ts';
import { type PageRow, readPages } from '../_books/page-rows.ts';
import { type AgentTool, defineTool } from '../_shared/agent-tools.ts';

const mostPages = 12;
const longestPage = 2500;
const mostHits = 10;
const fewestEntries = 3;

/** The tools of the agent that looks for a book's table of contents. They know the pages that have been read so far. */
export function bookTools(bookId: string): AgentTool[] {
  return [
    defineTool({
      name: 'look_at_pages',
      description: `Shows the text of pages from first_page to last_page, at most ${mostPages} at once, and where lines look like contents`,
      parameters: z.object({ first_page: z.int().min(1).max(100_000), last_page: z.int().min(1).max(100_000) }),
      async run({ first_page: from, last_page: to }, { env }) {
        const last = Math.min(to, from + mostPages - 1);
        const pages = await readPages(bookId, env, from, last);
        const missing = missingPages(pages, from, last);
        const texts = pages.flatMap(({ number, blend_result: page }) =>
          page ? [`# Page ${number}\n\n${page.text.slice(0, longestPage)}`] : [],
        );
        if (missing.length > 0) texts.push(`Not there, or not read yet: ${missing.join(', ')}.`);
        return [contentsNote(pages), ...texts].join('\n\n');
      },
    }),
    defineTool({
      name: 'search_text',
      description: 'Finds the pages on which a text stands, such as the word contents',
      parameters: z.object({ query: z.string().min(2).max(100) }),
      async run({ query }, { env }) {
        const wanted = query.toLowerCase();
        const found = (await readPages(bookId, env)).flatMap(({ number, blend_result: page }) => {
          const line = page?.lines.find(({ text }) => text.toLowerCase().includes(wanted));
          return line ? [`page ${number}: ${line.text.slice(0, 120)}`] : [];
        });
        return found.length === 0 ? `"${query}" stands on no page read so far.` : found.slice(0, mostHits).join('\n');
      },
    }),
  ];
}

/** Says where the first stretch of pages is with lines that end in leaders and a page number; zeros when there is none. */
function contentsNote(pages: readonly PageRow[]): string {
  const numbers = pages
    .filter(
      ({ blend_result: page }) =>
        (page?.lines ?? []).filter(({ text }) => readContentsLine(text)).length >= fewestEntries,
    )
    .map(({ number }) => number);
  const [first = 0] = numbers;
  let last = first;
  while (numbers.includes(last + 1)) last++;
  return [
    'By the look of their lines alone:',
    `first contents page: ${first}`,
    `last contents page: ${last} (${first === 0 ? 'none looks so' : 'lines that end in a page number'})`,
  ].join('\n');
}

function missingPages(pages: readonly PageRow[], from: number, to: number): number[] {
  const there = new Set(pages.filter(({ blend_result: page }) => page).map(({ number }) => number));
  return Array.from({ length: to - from + 1 }, (_, index) => from + index).filter((number) => !there.has(number));
}
