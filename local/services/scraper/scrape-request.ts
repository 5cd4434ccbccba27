import { z } from 'zod';
import { jobRequest, remedy, webUrl } from '../http/job-request.ts';

const defaultPages = 5;
const mostPages = 20;
const pageCount = remedy(`send a whole number from 1 to ${mostPages}`);

/** The body of the scraper's `POST /jobs`. */
export const scrapeRequest = jobRequest({
  url: webUrl,
  max_pages: z
    .int({ error: pageCount })
    .min(1, { error: pageCount })
    .max(mostPages, { error: pageCount })
    .default(defaultPages),
});
