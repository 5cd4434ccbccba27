import { z } from 'zod';
import { bodiesOf } from '../_books/contents-body.ts';
import { findContents, mainContents } from '../_books/contents-pages.ts';
import { runsOf } from '../_books/page-numbers.ts';
import { type PageRow, readPages } from '../_books/page-rows.ts';
import { type AgentTool, defineTool } from '../_millrace/agents/agent-tools.ts';
import { excerpt } from '../_millrace/mod.ts';
import { quote } from '../_millrace/model/prompt.ts';

const mostPages = 12;
const longestPage = 2500;
const longestNote = 2500;
/** Contents are looked for on these, and on the pages that are asked for. */
const likelyPages = 400;
const mostHits = 10;

/** The tools of the agent that looks for a book's table of contents. They know the pages that have been read so far. */
export function bookTools(bookId: string): AgentTool[] {
  return [
    defineTool({
      name: 'look_at_pages',
      description: `Shows the text of pages from first_page to last_page, at most ${mostPages} at once, and where lines look like contents`,
      parameters: z.object({ first_page: z.int().min(1).max(100_000), last_page: z.int().min(1).max(100_000) }),
      async run({ first_page: from, last_page: to }, { env }) {
        const last = Math.min(to, from + mostPages - 1);
        const all = await readPages(bookId, env, 1, Math.max(last, likelyPages));
        const pages = all.filter(({ number }) => number >= from && number <= last);
        const missing = missingPages(pages, from, last);
        const texts = pages.flatMap(({ number, blend_result: page }) =>
          page ? [quote(`page_${number}`, page.text, longestPage)] : [],
        );
        if (missing.length > 0) texts.push(`Not there, or not read yet: ${missing.join(', ')}.`);
        return [quote('look', contentsNote(all), longestNote), ...texts].join('\n\n');
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
          return line ? [`page ${number}: ${excerpt(line.text, 120)}`] : [];
        });
        if (found.length === 0) return `"${query}" stands on no page read so far.`;
        return quote('hits', found.slice(0, mostHits).join('\n'), longestNote);
      },
    }),
  ];
}

/**
 * Says where the contents are by the look of all pages read so far, which is the same whatever pages were asked for;
 * zeros when none look so.
 */
function contentsNote(pages: readonly PageRow[]): string {
  const stretches = findContents(bodiesOf(pages, runsOf(pages)));
  const main = mainContents(stretches);
  const others = stretches.filter((stretch) => stretch !== main).slice(0, mostHits);
  const look = main?.titled
    ? 'a title such as Contents, and lines that end in a page number or come again as titles'
    : '';
  return [
    'By the look of their lines alone:',
    `first contents page: ${main?.first_page ?? 0}`,
    `last contents page: ${main?.last_page ?? 0} (${main ? look || 'lines that end in a page number' : 'none looks so'})`,
    ...others.map(({ first_page: first, last_page: last }) => `Pages ${first} to ${last} look much the same.`),
  ].join('\n');
}

function missingPages(pages: readonly PageRow[], from: number, to: number): number[] {
  const there = new Set(pages.filter(({ blend_result: page }) => page).map(({ number }) => number));
  return Array.from({ length: to - from + 1 }, (_, index) => from + index).filter((number) => !there.has(number));
}
