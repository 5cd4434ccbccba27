import { type Resolve, readAllowedHosts, systemResolve } from '../http/guarded-agent.ts';
import { startJobService } from '../http/job-service.ts';
import type { Service } from '../http/listen.ts';
import { crawlSite, type ScrapedSite, type ScrapeLimits } from './crawl-site.ts';
import { fetchPage, type RawPage } from './fetch-page.ts';
import { HostSpacing } from './host-spacing.ts';
import { PageReader } from './page-reader.ts';
import { scrapeRequest } from './scrape-request.ts';

export interface ScraperOptions {
  /** Reads SCRAPER_AUTH_TOKEN, WEBHOOK_SECRET and SCRAPER_ALLOW_HOSTS, once. */
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

/**
 * Starts the scraper on the loopback interface. Resolves to its base URL and the way to stop it;
 * rejects when a setting cannot be used or the port is taken.
 */
export async function startScraper(options: ScraperOptions): Promise<Service> {
  const { env, port, callbackDelaysMs, resolve = systemResolve } = options;
  const allowedHosts = readAllowedHosts('SCRAPER_ALLOW_HOSTS', env);
  const limits = { ...defaultLimits, ...options.limits };
  const reader = new PageReader(limits.readMs);
  const spacing = new HostSpacing();
  const service = await startJobService({
    name: 'scraper',
    request: scrapeRequest,
    run: async (request, stop): Promise<ScrapedSite | { page: RawPage }> => {
      const common = { limits, allowedHosts, resolve, stop };
      if (request.mode === 'page') return { page: await fetchPage(request, { ...common, spacing }) };
      return crawlSite(request.url, { ...common, maxPages: request.max_pages, reader });
    },
    concurrency: 8,
    env,
    tokenSetting: 'SCRAPER_AUTH_TOKEN',
    port,
    callbackDelaysMs,
  });
  return {
    url: service.url,
    async stop() {
      await Promise.all([service.stop(), reader.stop()]);
    },
  };
}
