import { z } from 'zod';
import { excerpt, PermanentError } from '../_millrace/mod.ts';
import type { FetchResult } from '../_pipelines/articles-results.ts';
import { articleContent, articleTitle, enterByHand } from './article-text.ts';
import { webAddress } from './clean-url.ts';

const said = z.string().nullish().catch(null);

/** A scraper's report of a page; an older scraper omits some fields. */
const scrapedPage = z.object({
  url: z.string(),
  title: said,
  markdown: said,
  canonical_url: said,
  image_url: said,
  author: said,
  published_at: said,
  language: said,
  doubts: z.array(z.string()).optional().catch(undefined),
});
const scraped = z.object({ pages: z.array(scrapedPage).min(1) });

/**
 * Turns what the scraper found into an article. Throws the PermanentError `no_content` where the page has no text, and
 * `invalid_output` where the scraper speaks otherwise.
 */
export function pageArticle(result: unknown): FetchResult {
  const parsed = scraped.safeParse(result);
  const page = parsed.data?.pages[0];
  if (!page) {
    throw new PermanentError('invalid_output', 'The scraper’s result has no list "pages" of pages: check its version.');
  }
  const content = articleContent(page.markdown ?? '');
  if (content === '') {
    throw new PermanentError('no_content', `${page.url}: the page has no text. ${enterByHand}`);
  }
  return {
    title: articleTitle(page.title ?? '', content, page.url),
    content,
    canonical_url: webAddress(page.canonical_url ?? '') ?? webAddress(page.url) ?? page.url,
    image_url: webAddress(page.image_url ?? ''),
    author: articleLine(page.author),
    published_at: momentOf(page.published_at),
    language: articleLine(page.language),
    by: 'page',
    ...(page.doubts?.length ? { doubts: page.doubts.map(articleContent) } : {}),
  };
}

function articleLine(text: string | null | undefined): string | null {
  const line = articleContent(text ?? '').replace(/\s+/g, ' ');
  return line === '' ? null : excerpt(line, 200);
}

function momentOf(text: string | null | undefined): string | null {
  const moment = new Date(text ?? '');
  const year = moment.getUTCFullYear();
  return Number.isNaN(year) || year < 1 || year > 9999 ? null : moment.toISOString();
}
