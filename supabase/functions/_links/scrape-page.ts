import { z } from 'zod';
import {
  type FinishContext,
  type HandlerContext,
  PermanentError,
  readSettings,
  type Waiting,
  waiting,
} from '../_millrace/mod.ts';
import type { LinkScrapeResult } from '../_pipelines/links-results.ts';
import { projectClient, projectError } from '../_services/project-client.ts';
import { type PageRequest, type ScrapedPage, scrapedPage } from '../_services/scraped-page.ts';
import { scraper } from '../_services/scraper.ts';
import { contentless, lacksText } from '../_services/text/page-content.ts';
import { fromBase64 } from './base64.ts';
import { decodePage } from './decode-page.ts';
import { fingerprint } from './fingerprint.ts';
import { linkAddress } from './link-address.ts';
import { type PageParts, readPageParts } from './page-parts.ts';
import { withRemedy } from './page-remedies.ts';
import { readableText } from './page-text.ts';

/** The fields of a link that a scrape reads. */
export const scrapedLink = z.object({ entity: z.object({ raw_url: z.string(), canonical_url: z.string() }) });

/** Settings for requests to the scraper. */
export const scrapeSettings = z.object({
  SCRAPER_USER_AGENT: z
    .string()
    .regex(/^[\x20-\x7e]{1,300}$/, 'must be at most 300 characters of ASCII')
    .optional()
    .describe('set what the scraper is to call itself to the boards, with an address for complaints, or remove it'),
});

const window = { width: 1366, height: 768 };
/** Pages of one host are asked for as a reader would, one after the other. */
const spacing = { min: 500, max: 2_500 };
/** Of a page's text so much says whether it is one. */
const longestText = 5_000;
const jobId = z.looseObject({ job_id: z.string().min(1) });

/** Submits a link's page to the scraper, whose job finishes the attempt. Throws a StageError. */
export async function submitPage({ entity }: z.output<typeof scrapedLink>, context: HandlerContext): Promise<Waiting> {
  const url = linkAddress(entity).href;
  const { SCRAPER_USER_AGENT: user_agent } = readSettings(scrapeSettings, context.env);
  const request: PageRequest = {
    url,
    mode: 'page',
    viewport: window,
    spacing_ms: spacing,
    ...(user_agent === undefined ? {} : { user_agent }),
  };
  // A page that could not be had is asked for anew by the retry, so each submission has a key of its own.
  return waiting(scraper, await scraper.submit(request, context, context.submissionKey));
}

/** Drafts the page that a job brought: it becomes the link's raw row when the attempt completes. Throws what the job failed of, with the remedy. */
export async function keepPage(job: unknown, { entityId, env, signal }: FinishContext): Promise<LinkScrapeResult> {
  const page = pageOf(job);
  const bytes = fromBase64(page.body);
  const { text: html } = decodePage(bytes, page.content_type);
  const parts = readPageParts(html);
  refuseWithoutContent(page.url, html, parts);
  const hash = fingerprint({ html, parts, url: page.url });
  const { job_id: draft } = jobId.parse(job);
  const { error, status } = await projectClient(env)
    .rows.rpc('draft_link_page', {
      p_link_id: entityId,
      p_job_id: draft,
      p_page: {
        http_status: page.status,
        html_gzip_base64: page.body,
        raw_json: parts,
        fingerprint: hash,
        notes: notesOf(page),
      },
    })
    .abortSignal(signal);
  signal.throwIfAborted();
  if (error) throw projectError(status, error, 'Keeping the page');
  return { draft, http_status: page.status, bytes: page.bytes ?? html.length, fingerprint: hash };
}

/** Throws the PermanentError `no_content` for a page that shows no text and says nothing of itself to programs. */
function refuseWithoutContent(url: string, html: string, { json_ld, open_graph }: PageParts): void {
  if (json_ld.length > 0 || open_graph['og:description']) return;
  const text = readableText(html, longestText);
  const lack = lacksText(text) ?? (readableText(html, longestText, 'headings') === '' ? 'heading' : null);
  if (lack === null) return;
  const said = text === '' ? 'the page has no text' : contentless[lack];
  throw new PermanentError('no_content', `${url}: ${said}. Write queued to fetch it anew.`);
}

function pageOf(job: unknown): ScrapedPage {
  try {
    return scrapedPage(scraper.resultOf(job));
  } catch (error) {
    throw withRemedy(error);
  }
}

function notesOf({ url, content_type, bytes, user_agent }: ScrapedPage) {
  return { final_url: url, content_type, bytes: bytes ?? null, user_agent: user_agent ?? null };
}
