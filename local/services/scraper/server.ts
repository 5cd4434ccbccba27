import { type Resolve, readAllowedHosts, systemResolve } from '../http/guarded-agent.ts';
import { startJobService } from '../http/job-service.ts';
import type { Service } from '../http/listen.ts';
import { crawlSite, type ScrapedSite, type ScrapeLimits } from './crawl-site.ts';
import { fetchPage, type RawPage } from './fetch-page.ts';
import { type BringPage, fetchWhole } from './fetch-whole.ts';
import { HostSpacing } from './host-spacing.ts';
import type { PageBrowser } from './page-browser.ts';
import { PageReader } from './page-reader.ts';
import { scrapeRequest } from './scrape-request.ts';

export interface ScraperOptions {
  /** Reads SCRAPER_AUTH_TOKEN, WEBHOOK_SECRET, SCRAPER_ALLOW_HOSTS, SCRAPER_BROWSER and CHROMIUM_PATH, once. */
  env: Record<string, string | undefined>;
  port?: number;
  /** How host names are resolved; the machine's own way unless a test gives another. */
  resolve?: Resolve;
  limits?: Partial<ScrapeLimits>;
  /** Pauses between the tries of a callback. */
  callbackDelaysMs?: number[];
}

const defaultLimits: ScrapeLimits = {
  pageBytes: 2 * 1024 * 1024,
  rawBytes: 5 * 1024 * 1024,
  pageMs: 10_000,
  jobMs: 30_000,
  readMs: 5_000,
};

/** Jobs at a time. A page in a browser takes some hundred MB. */
const jobsAtATime = 8;
const jobsInBrowser = 3;

/**
 * Starts the scraper on the loopback interface; with SCRAPER_BROWSER=1 it reads pages as Chromium shows them. Resolves to its
 * base URL and the way to stop it; rejects when a setting cannot be used, the port is taken, or Chromium does not start.
 */
export async function startScraper(options: ScraperOptions): Promise<Service> {
  const { env, port, callbackDelaysMs, resolve = systemResolve } = options;
  const allowedHosts = readAllowedHosts('SCRAPER_ALLOW_HOSTS', env);
  const limits = { ...defaultLimits, ...options.limits };
  const reader = new PageReader(limits.readMs);
  const spacing = new HostSpacing();
  const browser = await startBrowser(env);
  const bring: BringPage = (start, page, viewport) =>
    browser ? browser.bring(start, { ...page, allowedHosts, resolve, viewport }) : fetchWhole(start, page);
  const service = await startJobService({
    name: 'scraper',
    request: scrapeRequest,
    run: async (request, stop): Promise<ScrapedSite | { page: RawPage }> => {
      const common = { limits, allowedHosts, resolve, stop, bring };
      if (request.mode === 'page') return { page: await fetchPage(request, { ...common, spacing }) };
      return crawlSite(request.url, { ...common, maxPages: request.max_pages, reader });
    },
    concurrency: browser ? jobsInBrowser : jobsAtATime,
    env,
    tokenSetting: 'SCRAPER_AUTH_TOKEN',
    port,
    callbackDelaysMs,
  }).catch(async (error) => {
    await browser?.stop();
    throw error;
  });
  return {
    url: service.url,
    async stop() {
      await Promise.all([service.stop(), reader.stop(), browser?.stop()]);
    },
  };
}

/** Resolves to the browser for which SCRAPER_BROWSER asks. Throws an Error on another value than it may have. */
async function startBrowser(env: Record<string, string | undefined>): Promise<PageBrowser | undefined> {
  const value = env.SCRAPER_BROWSER ?? '';
  if (/^(?:0|false|off|no)?$/i.test(value)) return undefined;
  const isUnsandboxed = value === 'unsandboxed';
  if (!isUnsandboxed && !/^(?:1|true|on|yes)$/i.test(value)) {
    throw new Error(`SCRAPER_BROWSER is ${JSON.stringify(value)}: write 1 to read pages in Chromium, or remove it`);
  }
  // Loaded here, because a scraper without a browser need not have its library.
  const { PageBrowser } = await import('./page-browser.ts');
  return PageBrowser.start(isUnsandboxed ? 'unsandboxed' : 'sandboxed', env);
}
