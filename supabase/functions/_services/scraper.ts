import { jobService } from '../_millrace/mod.ts';

/**
 * Reads web sites and single pages. Of a site it takes `{ url, max_pages }`; its result is `{ pages: [{ url, title, markdown, canonical_url, image_url, author,
 * published_at, language }] }`. The last five are what a page says of itself, null where it says nothing; a scraper may leave
 * them out. Of one page it takes `{ url, mode: 'page', user_agent, viewport, spacing_ms }`: see scraped-page.ts.
 */
export const scraper = jobService({ name: 'scraper' });
