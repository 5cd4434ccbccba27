import { z } from 'zod';
import {
  defineStage,
  excerpt,
  type HandlerContext,
  PermanentError,
  storableText,
  type Waiting,
  waiting,
} from '../_millrace/mod.ts';
import { leads } from '../_pipelines/leads.ts';
import { scrapeResult } from '../_pipelines/leads-results.ts';
import { scraper } from '../_services/scraper.ts';

const MAX_PAGES = 5;

const record = z.record(z.string(), z.unknown());
/** A scraper's report of a site; an older scraper omits `left_out`. */
const scraped = z.object({ pages: z.array(record), left_out: z.array(record).catch([]) });
const input = z.object({ entity: z.object({ company_url: z.string() }) });

/** Submits the lead's web site to the scraper; its job finishes the attempt. */
export async function submitSite({ entity }: z.output<typeof input>, context: HandlerContext): Promise<Waiting> {
  // A site that could not be read is read anew by the retry, so each submission has a key of its own.
  const request = { url: siteUrl(entity.company_url), max_pages: MAX_PAGES };
  return waiting(scraper, await scraper.submit(request, context, context.submissionKey));
}

/** Turns the scraper's finished job into the pages worth keeping. Throws what the job failed of. */
export function pagesOf(job: unknown): z.input<typeof scrapeResult> {
  const result = scraped.safeParse(scraper.resultOf(job));
  if (!result.success) {
    throw new PermanentError('invalid_output', 'The scraper’s result has no list "pages": check its version.');
  }
  const pages = result.data.pages
    .map(({ url, title, markdown, doubts }) => ({
      ...{ url: clean(url), title: clean(title), markdown: clean(markdown) },
      ...(Array.isArray(doubts) && doubts.length > 0 ? { doubts: doubts.map(clean) } : {}),
    }))
    .filter((page) => page.markdown.trim() !== '');
  if (pages.length === 0) throw new PermanentError('no_content', 'No text was found on the site.');
  const lost = result.data.left_out.map(({ url, code }) => ({ url: clean(url), code: clean(code) }));
  return { pages, ...(lost.length === 0 ? {} : { left_out: lost }) };
}

export const scrape = defineStage({
  pipeline: leads,
  stage: 'scrape',
  input,
  output: scrapeResult,
  handler: submitSite,
  services: [scraper],
  finish: pagesOf,
  settings: [scraper.settings],
});

function siteUrl(text: string): string {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : null;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url.href;
  throw new PermanentError(
    'invalid_url',
    `company_url is ${JSON.stringify(excerpt(text, 200))}, which is no web address: ` +
      'write it as https://example.com and set the stage to queued again.',
  );
}

/** A site may hold characters that Postgres cannot store; a missing title is no reason to fail. */
function clean(value: unknown): string {
  return typeof value === 'string' ? storableText(value) : '';
}
