import { setTimeout as pause } from 'node:timers/promises';
import { contentless, lacksContent } from '../../../supabase/functions/_services/text/page-content.ts';
import { deadline } from '../../platform/deadline.ts';
import { fetchUrl, readWebUrl } from '../http/fetch-url.ts';
import { type AllowedHosts, guardedAgent, type Resolve } from '../http/guarded-agent.ts';
import { JobError, type JobErrorCode, toJobError } from '../http/job-error.ts';
import type { BringPage } from './fetch-whole.ts';
import type { PageMetadata } from './page-metadata.ts';
import type { PageReader } from './page-reader.ts';
import type { ReadPage } from './read-page.ts';
import { readRobots, userAgent } from './robots.ts';

export interface ScrapedPage extends PageMetadata {
  url: string;
  title: string;
  markdown: string;
  /** Doubts about its letters, in sentences. */
  doubts?: string[];
}

/** The pages of a site that was scraped. */
export interface ScrapedSite {
  pages: ScrapedPage[];
  /** Linked pages that could not be read, each with the code of why. */
  left_out?: { url: string; code: JobErrorCode }[];
}

/** Bounds of one job; bytes and milliseconds. */
export interface ScrapeLimits {
  pageBytes: number;
  /** Bytes of a page that is brought as it was sent. */
  rawBytes: number;
  pageMs: number;
  jobMs: number;
  /** Milliseconds for turning one page into markdown. */
  readMs: number;
}

export interface CrawlOptions {
  maxPages: number;
  limits: ScrapeLimits;
  allowedHosts: AllowedHosts;
  resolve: Resolve;
  reader: PageReader;
  bring: BringPage;
  /** Ends the crawl early, when the service stops. */
  stop: AbortSignal;
}

const robotsBytes = 512 * 1024;
const headers = {
  'user-agent': `${userAgent}/1.0`,
  accept: 'text/html,application/xhtml+xml,text/plain;q=0.8,*/*;q=0.1',
};
const notPages = /\.(pdf|jpe?g|png|gif|webp|svg|ico|css|js|json|xml|zip|gz|mp[34]|webm|docx?|xlsx?|pptx?|woff2?)$/i;

/**
 * Reads a site: the start page, then pages of the same host in the order in which they are linked.
 * Rejects with a JobError when the start page cannot be had or nothing readable is found, and where the start page
 * alone is asked for and has no text of its own; any other page that fails is left out and listed.
 */
export async function crawlSite(startUrl: string, options: CrawlOptions): Promise<ScrapedSite> {
  const { limits, maxPages } = options;
  const agent = guardedAgent(options.allowedHosts, options.resolve);
  const { signal, clear } = deadline(limits.jobMs, options.stop);
  const common = { agent, signal, timeoutMs: limits.pageMs, headers };
  const robots = readRobots(async (url) => {
    const { body } = await fetchUrl(url, { ...common, maxBytes: robotsBytes, truncate: true });
    return body.toString();
  });

  async function readOne(url: URL): Promise<{ url: URL; page: ReadPage }> {
    const fetched = await options.bring(url, { ...common, maxBytes: limits.pageBytes, check: robots.check });
    return { url: fetched.url, page: await options.reader.read(fetched) };
  }

  try {
    const start = await readOne(readWebUrl(startUrl));
    const pages = new Map<string, ScrapedPage>();
    const seen = new Set([pageKey(new URL(startUrl)), pageKey(start.url)]);
    const queue: URL[] = [];
    const leftOut: { url: string; code: JobErrorCode }[] = [];
    const add = ({ url, page }: { url: URL; page: ReadPage }) => {
      if (whyEmpty(page) === null)
        pages.set(pageKey(url), {
          ...{ url: url.href, title: page.title, markdown: page.markdown, ...page.metadata },
          ...(page.doubts.length === 0 ? {} : { doubts: page.doubts }),
        });
      for (const link of page.links) {
        const next = new URL(link);
        if (!isPageOf(start.url, next) || seen.has(pageKey(next))) continue;
        seen.add(pageKey(next));
        queue.push(next);
      }
    };
    add(start);
    const nothing = new JobError('no_content', `${start.url.href}: ${whyEmpty(start.page)}`);
    if (pages.size === 0 && maxPages === 1) throw nothing;
    // Dead links must not keep a job busy for ever, so the tries are bounded as well as the pages.
    for (let tries = 0; tries < maxPages * 3 && pages.size < maxPages && !signal.aborted; tries++) {
      const next = queue.shift();
      if (!next) break;
      try {
        await pause(await robots.delayMs(next), undefined, { signal, ref: false });
        const found = await readOne(readWebUrl(next.href));
        seen.add(pageKey(found.url));
        if (!pages.has(pageKey(found.url)) && isPageOf(start.url, found.url)) add(found);
      } catch (error) {
        if (signal.aborted) break;
        const { code } = toJobError(error, next);
        leftOut.push({ url: next.href, code });
        if (code === 'rate_limited') break;
      }
    }
    if (pages.size === 0) throw nothing;
    return { pages: [...pages.values()], ...(leftOut.length === 0 ? {} : { left_out: leftOut }) };
  } catch (error) {
    throw toJobError(error, new URL(startUrl));
  } finally {
    clear();
    await agent.destroy();
  }
}

/** Returns why a page has no text to be kept; null where it has one. */
function whyEmpty({ markdown }: ReadPage): string | null {
  if (!/[\p{L}\p{N}]/u.test(markdown)) return 'no readable text was found';
  const lack = lacksContent(markdown);
  return lack && contentless[lack];
}

function isPageOf(start: URL, url: URL): boolean {
  const sameSite = siteOf(start) === siteOf(url);
  return sameSite && /^https?:$/.test(url.protocol) && !notPages.test(url.pathname);
}

function siteOf(url: URL): string {
  return url.host.replace(/^www\./, '');
}

// Links to the same page differ in a trailing slash, a fragment or "www.": their key is the same.
function pageKey(url: URL): string {
  return `${siteOf(url)}${url.pathname.replace(/\/(index\.html?)?$/, '')}${url.search}`;
}
