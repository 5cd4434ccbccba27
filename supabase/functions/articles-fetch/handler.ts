import { z } from 'zod';
import { enterByHand } from '../_articles/article-text.ts';
import { webAddress } from '../_articles/clean-url.ts';
import { pageArticle } from '../_articles/read-page.ts';
import { looksLikePdf, pdfArticle } from '../_articles/read-pdf.ts';
import { webAccessSettings } from '../_articles/web-access.ts';
import {
  defineStage,
  excerpt,
  type FinishContext,
  type HandlerContext,
  PermanentError,
  type Waiting,
  waiting,
} from '../_millrace/mod.ts';
import { articles } from '../_pipelines/articles.ts';
import { type FetchResult, fetchResult } from '../_pipelines/articles-results.ts';
import { projectClient, projectError } from '../_services/project-client.ts';
import { scraper } from '../_services/scraper.ts';

const input = z.object({ entity: z.object({ url: z.string().nullable() }) });

/** Submits the article's page to the scraper, whose job finishes the attempt; a PDF is read at once. Throws a StageError. */
export async function fetchArticle(
  { entity }: z.output<typeof input>,
  context: HandlerContext,
): Promise<FetchResult | Waiting> {
  const url = addressOf(entity.url);
  const pdf = looksLikePdf(url) ? await pdfArticle(url, context) : null;
  if (pdf) return pdf;
  // A page that could not be read is read anew by the retry, so each submission has a key of its own.
  return waiting(scraper, await scraper.submit({ url, max_pages: 1 }, context, context.submissionKey));
}

/**
 * Turns the scraper's finished job into the article. A PDF that its address does not show is fetched and read here. Throws what
 * the job failed of, and the PermanentError `recording` where the address leads to sound or a film.
 */
export async function finishArticle(job: unknown, context: FinishContext): Promise<FetchResult> {
  try {
    return pageArticle(scraper.resultOf(job));
  } catch (error) {
    if (!(error instanceof PermanentError && error.code === 'unsupported_type')) throw error;
    const url = await urlOf(context);
    if (isRecording(url, error.message)) throw recording(url);
    const pdf = await pdfArticle(url, context);
    if (pdf) return pdf;
    throw error;
  }
}

export const fetchStage = defineStage({
  pipeline: articles,
  stage: 'fetch',
  input,
  output: fetchResult,
  handler: fetchArticle,
  services: [scraper],
  finish: finishArticle,
  settings: [scraper.settings, webAccessSettings],
});

function addressOf(text: string | null): string {
  const url = webAddress(text ?? '');
  if (url !== null) return url;
  throw new PermanentError(
    'invalid_url',
    `url is ${JSON.stringify(text ? excerpt(text, 200) : null)}, which is no web address: write it as https://example.com/page ` +
      'and set status_code to 110.',
  );
}

/** Whether the scraper refused sound or a film, by the type that it names or by the address's end. */
function isRecording(url: string, refusal: string): boolean {
  const byEnd = /\.(?:aac|aiff?|flac|m4[abv]|mka|mkv|mov|mp[34]|mpe?g|og[agv]|opus|wav|webm|wma|wmv)$/i;
  return /\b(?:audio|video)\/|\bapplication\/ogg\b/i.test(refusal) || byEnd.test(new URL(url).pathname);
}

function recording(url: string): PermanentError {
  return new PermanentError(
    'recording',
    `${url}: it is a recording, and this pipeline reads texts alone. Write the address of a page about it as url, and set ` +
      `status_code to 110; or have its words written down (the documents pipeline does). ${enterByHand}`,
  );
}

async function urlOf({ entityId, env, signal }: FinishContext): Promise<string> {
  const { data, error, status } = await projectClient(env)
    .rows.from('ingestion_queue')
    .select('url')
    .eq('id', entityId)
    .abortSignal(signal)
    .maybeSingle();
  signal.throwIfAborted();
  if (error) throw projectError(status, error, `Reading article ${entityId}`);
  return addressOf(data?.url ?? null);
}
