import { createHash } from 'node:crypto';
import { jobPosting } from './job-posting.ts';
import { readableText } from './page-text.ts';
import type { RawPage } from './read-job.ts';

const longestText = 50_000;

/** A hash of what matters on a page: its job where it states one, else its text, so that another advertisement is no change. */
export function fingerprint({ html, parts, url }: RawPage): string {
  const posting = jobPosting(parts.json_ld, url);
  const matter = posting
    ? // The country only says when a date is over.
      { ...posting, datePosted: null, country: undefined }
    : [parts.open_graph['og:title'] ?? parts.title, readableText(html, longestText)];
  return createHash('sha256').update(JSON.stringify(matter)).digest('hex');
}
