import { PermanentError } from '../_millrace/mod.ts';
import type { StageJobResult } from '../_pipelines/links-results.ts';
import { dayEnd } from './day-end.ts';
import { type JobPosting, jobPosting } from './job-posting.ts';
import { momentOf } from './moments.ts';
import type { PageParts } from './page-parts.ts';
import { readableText } from './page-text.ts';

const longestText = 50_000;

/** A page as it was fetched. */
export interface RawPage {
  html: string;
  parts: PageParts;
  /** Where it was found. */
  url: string;
  /** Doubts about its letters, in sentences. */
  doubts?: string[];
}

/**
 * Reads a job from a page: from JSON-LD, else from OpenGraph, else from the visible text. Throws the PermanentError
 * `no_content` for a page without content, and `expired` where the page says that the job is over.
 */
export function readJob({ html, parts, url, doubts = [] }: RawPage, now: Date): StageJobResult {
  const posting = jobPosting(parts.json_ld, url);
  const og = parts.open_graph;
  const text = posting?.description || readableText(html, longestText) || og['og:description'] || null;
  const title = posting?.title ?? (og['og:title'] || parts.title || null);
  if (title === null && text === null) {
    throw new PermanentError('no_content', `${url}: the page has no text. Write queued to fetch it anew.`);
  }
  const problems = [
    ...doubts,
    ...(posting || parts.broken === 0 ? [] : ['Its JSON-LD is broken and was passed over.']),
  ];
  const said = posting?.validThrough ?? null;
  const ending = dayEnd(said ?? '', posting?.country ?? null);
  const validThrough = momentOf(ending?.moment.toISOString() ?? said, 'validThrough', problems);
  if (validThrough !== null && (ending?.over.getTime() ?? Date.parse(validThrough)) < now.getTime()) {
    throw new PermanentError(
      'expired',
      `The page says that the job ended on ${(ending ? said : validThrough)?.trim().slice(0, 10)}. Once it is renewed, write queued.`,
    );
  }
  return {
    kind: 'job',
    title,
    company: posting?.company ?? null,
    location: posting?.location ?? null,
    description: text,
    salary: posting?.salary ?? null,
    extras: {
      read_from: posting ? 'json_ld' : og['og:title'] ? 'open_graph' : 'text',
      application_url: posting?.applicationUrl ?? null,
      valid_through: validThrough,
      date_posted: momentOf(posting?.datePosted ?? null, 'datePosted', problems),
      employment_type: posting?.employmentType ?? null,
      ...websites(posting),
      problems,
    },
  };
}

function websites(posting: JobPosting | null) {
  const website = posting?.companyWebsite ?? null;
  const isProfile = website !== null && /^https?:\/\/(?:\w+\.)?linkedin\.com\//.test(website);
  return { company_website: isProfile ? null : website, company_linkedin: isProfile ? website : null };
}
