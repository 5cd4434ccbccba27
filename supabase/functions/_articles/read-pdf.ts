import { type HandlerContext, PermanentError, type Traced } from '../_millrace/mod.ts';
import type { FetchResult } from '../_pipelines/articles-results.ts';
import { oneAtATime } from '../_services/one-at-a-time.ts';
import { readPdfText } from '../_services/pdf/pdf-text.ts';
import { fetchWebFile } from '../_services/web-file.ts';
import { articleContent, articleTitle, enterByHand } from './article-text.ts';
import { webAddress } from './clean-url.ts';
import { allowedHosts } from './web-access.ts';

const maxBytes = 20_000_000;

/** Why a PDF's text could not be read, in words for a reader who cannot change the file. */
const reasons: Record<string, string> = {
  no_text_layer: 'the PDF has pictures of pages and no text',
  no_text: 'the pages of the PDF are blank',
  encrypted_document: 'the PDF asks for a password',
  damaged_document: 'the PDF is damaged, or was cut off',
  too_many_pages: 'the PDF has too many pages',
  file_too_large: 'the PDF has too much text',
};

/**
 * Fetches a PDF from the web and reads its text, one at a time. Null where the address leads to something else. Throws a
 * StageError.
 */
export async function pdfArticle(
  url: string,
  { env, signal, ...traced }: Pick<HandlerContext, 'env' | 'signal'> & Traced,
): Promise<FetchResult | null> {
  const allowed = allowedHosts(env);
  const options = { accept: 'application/pdf', maxBytes, timeoutMs: 15_000, signal, allowed, traced };
  return oneAtATime(signal, async () => {
    try {
      const file = await fetchWebFile(url, { ...options, check: refuseOthers });
      return await readArticle(file.url, file.bytes);
    } catch (error) {
      if (error instanceof NoPdf) return null;
      throw error;
    }
  });
}

/** Whether an address says by its end that a PDF is there. */
export function looksLikePdf(url: string): boolean {
  return /\.pdf$/i.test(new URL(url).pathname);
}

class NoPdf extends Error {}

function refuseOthers(head: Uint8Array): void {
  if (!new TextDecoder('latin1').decode(head.subarray(0, 1024)).includes('%PDF-')) throw new NoPdf();
}

async function readArticle(url: string, bytes: Uint8Array): Promise<FetchResult> {
  const { text, doubts } = await readPdfText(bytes).catch((error) => {
    if (!(error instanceof PermanentError)) throw error;
    const isEmpty = error.code === 'no_text' || error.code === 'no_text_layer';
    const reason = reasons[error.code] ?? 'the PDF cannot be read';
    throw new PermanentError(isEmpty ? 'no_content' : error.code, `${url}: ${reason}. ${enterByHand}`);
  });
  const content = articleContent(text);
  if (content === '') throw new PermanentError('no_content', `${url}: the PDF has no text. ${enterByHand}`);
  return {
    title: articleTitle('', content, url),
    content,
    canonical_url: webAddress(url) ?? url,
    image_url: null,
    author: null,
    published_at: null,
    language: null,
    by: 'pdf',
    ...(doubts && { doubts }),
  };
}
