import { type Fetched, type FetchOptions, fetchUrl, readWebUrl } from '../http/fetch-url.ts';
import { JobError } from '../http/job-error.ts';
import { decodePage, isHtml } from './decode-page.ts';
import { baseOf, leadsTo, readOnward } from './page-onward.ts';

/** The size of a window, in pixels. */
export interface Viewport {
  width: number;
  height: number;
}

/** Gets a page where it leads to, as it is to be read. Rejects with a JobError, or with what toJobError() makes one of. */
export type BringPage = (start: URL, options: FetchOptions, viewport?: Viewport) => Promise<Fetched>;

/** Frames within frames beyond this depth are left out. */
const deepest = 2;

/**
 * Gets a page where it leads to, with the pages of its frames in the place of a frameset: one page of HTML in UTF-8, whose
 * links are absolute. A frame that cannot be had is named in the text; where all cannot, throws the first one's JobError.
 */
export async function fetchWhole(start: URL, options: FetchOptions, depth = 0): Promise<Fetched> {
  const fetched = await fetchUrl(start, { ...options, leadsTo });
  if (!isHtml(fetched.contentType)) return fetched;
  const html = decodePage(fetched.body, fetched.contentType).text;
  if (!/<frameset\b/i.test(html)) return fetched;
  const onward = readOnward(html);
  const { frames, title } = onward;
  if (frames.length === 0 || depth >= deepest) return fetched;
  const parts: string[] = [];
  const failures: JobError[] = [];
  const base = baseOf(onward, fetched.url);
  // In turn: the frames are all of one host.
  for (const frame of frames) {
    try {
      parts.push(await readFrame(readWebUrl(frame, base), options, depth));
    } catch (error) {
      if (!(error instanceof JobError) || options.signal.aborted) throw error;
      failures.push(error);
      parts.push(`<p>[A frame of this page could not be read: ${escaped(error.message)}]</p>`);
    }
  }
  const [first] = failures;
  if (first && failures.length === frames.length) throw first;
  const whole = `<html><head><title>${escaped(title.trim())}</title></head><body>${parts.join('\n')}</body></html>`;
  return { ...fetched, contentType: 'text/html; charset=utf-8', body: bounded(whole, fetched.url, options.maxBytes) };
}

async function readFrame(url: URL, options: FetchOptions, depth: number): Promise<string> {
  const frame = await fetchWhole(url, options, depth + 1);
  const { text } = decodePage(frame.body, frame.contentType);
  if (/^text\/plain\b/i.test(frame.contentType)) return `<pre>${escaped(text)}</pre>`;
  if (!isHtml(frame.contentType)) {
    throw new JobError('unsupported_type', `${frame.url.href}: is "${frame.contentType.split(';')[0]}"`);
  }
  const body = /<body\b[^>]*>([\s\S]*?)(?:<\/body\s*>|$)/i.exec(text)?.[1] ?? text;
  return `<div>${withAbsoluteLinks(body, frame.url)}</div>`;
}

function withAbsoluteLinks(html: string, base: URL): string {
  return html.replace(/(<a\b[^>]*?\shref\s*=\s*)(?:"([^"]*)"|'([^']*)'|([^\s>"']+))/gi, (whole, start, ...found) => {
    const href = found.slice(0, 3).find((text) => text !== undefined);
    const isUsable = href !== undefined && href !== '' && URL.canParse(href, base);
    return isUsable ? `${start}"${new URL(href, base).href.replaceAll('"', '%22')}"` : whole;
  });
}

function bounded(html: string, url: URL, maxBytes: number): Buffer {
  const body = Buffer.from(html);
  if (body.length <= maxBytes) return body;
  throw new JobError('too_large', `${url.href}: its frames are larger than the limit of ${maxBytes} bytes`);
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
