import { gzipSync } from 'node:zlib';
import { deadline } from '../../platform/deadline.ts';
import { type FetchOptions, fetchUrl, readWebUrl } from '../http/fetch-url.ts';
import { type AllowedHosts, guardedAgent, type Resolve } from '../http/guarded-agent.ts';
import { JobError, toJobError } from '../http/job-error.ts';
import type { ScrapeLimits } from './crawl-site.ts';
import { isHtml } from './decode-page.ts';
import type { BringPage } from './fetch-whole.ts';
import type { HostSpacing } from './host-spacing.ts';
import { refuseOtherPages } from './page-faults.ts';
import { readRobots, userAgent } from './robots.ts';
import type { ScrapeRequest } from './scrape-request.ts';

/** A page as the site sent it, or as the page's scripts made it. */
export interface RawPage {
  /** Where it was found in the end. */
  url: string;
  status: number;
  content_type: string;
  /** Its bytes, gzipped, in base64. */
  body: string;
  bytes: number;
  user_agent: string;
}

export interface PageOptions {
  limits: ScrapeLimits;
  allowedHosts: AllowedHosts;
  resolve: Resolve;
  spacing: HostSpacing;
  bring: BringPage;
  /** Ends the job early, when the service stops. */
  stop: AbortSignal;
}

const robotsBytes = 512 * 1024;

/** Brings one page. Rejects with a JobError: also where the site sends something in the page's place. */
export async function fetchPage(request: ScrapeRequest, options: PageOptions): Promise<RawPage> {
  const { limits, spacing, bring } = options;
  const agent = guardedAgent(options.allowedHosts, options.resolve);
  const { signal, clear } = deadline(limits.jobMs, options.stop);
  const asked = request.user_agent ?? `${userAgent}/1.0`;
  const common = { agent, signal, timeoutMs: limits.pageMs, headers: headersOf(request, asked) };
  const robots = readRobots(async (url) => {
    const { body } = await fetchUrl(url, { ...common, maxBytes: robotsBytes, truncate: true });
    return body.toString();
  });
  try {
    const start = readWebUrl(request.url);
    if (request.spacing_ms) await spacing.turn(start.host, request.spacing_ms, signal);
    const page: FetchOptions = { ...common, maxBytes: limits.rawBytes, check: robots.check };
    const fetched = await bring(start, page, request.viewport);
    if (!isHtml(fetched.contentType)) {
      const type = fetched.contentType.split(';')[0];
      throw new JobError('unsupported_type', `${fetched.url.href}: is "${type}"; only HTML can be read`);
    }
    if (fetched.body.toString('latin1').trim() === '') {
      throw new JobError('no_content', `${fetched.url.href}: the page is empty`);
    }
    refuseOtherPages(start, fetched);
    return {
      url: fetched.url.href,
      status: fetched.status,
      content_type: fetched.contentType,
      body: gzipSync(fetched.body).toString('base64'),
      bytes: fetched.body.length,
      user_agent: asked,
    };
  } catch (error) {
    throw toJobError(error, new URL(request.url));
  } finally {
    clear();
    await agent.destroy();
  }
}

function headersOf({ viewport }: ScrapeRequest, asked: string): Record<string, string> {
  const headers = { 'user-agent': asked, accept: 'text/html,application/xhtml+xml,*/*;q=0.1' };
  if (!viewport) return headers;
  return {
    ...headers,
    'sec-ch-viewport-width': String(viewport.width),
    'sec-ch-viewport-height': String(viewport.height),
  };
}
