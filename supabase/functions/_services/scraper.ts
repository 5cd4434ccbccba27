import { jobService } from '../_millrace/mod.ts';

/**
 * Reads web sites. Takes `{ url, max_pages }`; its result is `{ pages: [{ url, title, markdown, canonical_url, image_url, author,
 * published_at, language }] }`. The last five are what a page says of itself, null where it says nothing; a scraper may leave
 * them out.
 */
export const scraper = jobService({ name: 'scraper' });
