import { z } from 'zod';
import { PermanentError } from '../_millrace/mod.ts';

/** A request to the scraper for one page, as the site sends it. */
export interface PageRequest {
  url: string;
  mode: 'page';
  /** The scraper's name to the site; the scraper obeys robots.txt in any case. */
  user_agent?: string;
  viewport?: { width: number; height: number };
  /** A random wait between these before the next page of the same host. */
  spacing_ms?: { min: number; max: number };
}

const result = z.object({
  page: z.object({
    /** Where it was found in the end. */
    url: z.string().min(1),
    status: z.int(),
    content_type: z.string(),
    /** Its bytes, gzipped, in base64. */
    body: z.base64(),
    bytes: z.int().optional(),
    user_agent: z.string().optional(),
  }),
});

export type ScrapedPage = z.output<typeof result>['page'];

/**
 * The page in a scraper's result. Throws the PermanentError `invalid_output` where there is none.
 *
 * @example
 * ```ts
 * const { url, status } = scrapedPage({ page: { url: 'https://a.test/', status: 200, content_type: 'text/html', body: '' } });
 * ```
 */
export function scrapedPage(given: unknown): ScrapedPage {
  const parsed = result.safeParse(given);
  if (parsed.success) return parsed.data.page;
  throw new PermanentError(
    'invalid_output',
    'The scraper’s result has no "page" with url, status, content_type and body: it must know mode "page".',
  );
}
