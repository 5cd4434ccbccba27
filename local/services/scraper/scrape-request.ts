import { z } from 'zod';
import { jobRequest, remedy, webUrl } from '../http/job-request.ts';

const defaultPages = 5;
const mostPages = 20;
const pageCount = remedy(`send a whole number from 1 to ${mostPages}`);
const longestSpacingMs = 10_000;
const pixels = remedy('send a whole number from 1 to 10000');
const milliseconds = remedy(`send a whole number from 0 to ${longestSpacingMs}`);
const wait = z
  .int({ error: milliseconds })
  .min(0, { error: milliseconds })
  .max(longestSpacingMs, { error: milliseconds });
const length = z.int({ error: pixels }).min(1, { error: pixels }).max(10_000, { error: pixels });

/** The body of the scraper's `POST /jobs`. */
export const scrapeRequest = jobRequest({
  url: webUrl,
  max_pages: z
    .int({ error: pageCount })
    .min(1, { error: pageCount })
    .max(mostPages, { error: pageCount })
    .default(defaultPages),
  /** `site` reads the text of a site's pages, `page` brings one page as it was sent. */
  mode: z.enum(['site', 'page'], { error: remedy('send "site" or "page"') }).default('site'),
  /** The User-Agent of requests to the site; robots.txt is obeyed under the scraper's own name. */
  user_agent: z
    .string({ error: remedy('send a text') })
    .regex(/^[\x20-\x7e]{1,300}$/, { error: 'has other characters than a header may have; send at most 300 of ASCII' })
    .optional(),
  /** How large a window the page is to be laid out for. */
  viewport: z.strictObject({ width: length, height: length }, { error: remedy('send {"width", "height"}') }).optional(),
  /** A random wait between these before the next page of the same host. */
  spacing_ms: z.strictObject({ min: wait, max: wait }, { error: remedy('send {"min", "max"}') }).optional(),
});

export type ScrapeRequest = z.output<typeof scrapeRequest>;
