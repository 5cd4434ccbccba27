import { jobService } from '../_millrace/mod.ts';

/** Reads web sites. Takes `{ url, max_pages }`; its result is `{ pages: [{ url, title, markdown }] }`. */
export const scraper = jobService({ name: 'scraper' });
