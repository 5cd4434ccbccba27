import robotsParser from 'robots-parser';
import { JobError, type JobErrorCode } from '../http/job-error.ts';

/** The name this scraper gives to sites and looks for in their robots.txt. */
export const userAgent = 'MillraceScraper';

/** The rules of a site's robots.txt for this scraper. */
export interface Robots {
  /** Throws JobError `robots_disallowed` when the site asks not to fetch the URL. */
  check(url: URL): Promise<void>;
  /** Milliseconds the site wants between two pages. */
  delayMs(url: URL): Promise<number>;
}

// A site without a usable robots.txt allows everything (RFC 9309, 2.3.1.3); any other error is the page's own as well.
const unavailable: JobErrorCode[] = [
  'not_found',
  'forbidden',
  'http_error',
  'too_many_redirects',
  'invalid_url',
  'damaged_content',
];

/** Reads each origin's robots.txt once, by the given fetch, at the first question about that origin. */
export function readRobots(fetchText: (url: URL) => Promise<string>): Robots {
  const byOrigin = new Map<string, Promise<ReturnType<typeof robotsParser>>>();

  function rulesOf(url: URL): Promise<ReturnType<typeof robotsParser>> {
    const known = byOrigin.get(url.origin);
    if (known) return known;
    const robotsUrl = new URL('/robots.txt', url);
    const rules = fetchText(robotsUrl)
      .catch((error) => {
        if (error instanceof JobError && unavailable.includes(error.code)) return '';
        throw error;
      })
      .then((text) => robotsParser(robotsUrl.href, text));
    byOrigin.set(url.origin, rules);
    return rules;
  }

  return {
    async check(url) {
      if ((await rulesOf(url)).isDisallowed(url.href, userAgent)) {
        throw new JobError('robots_disallowed', `${url.href}: the site's robots.txt asks ${userAgent} to stay away`);
      }
    },
    async delayMs(url) {
      return ((await rulesOf(url)).getCrawlDelay(userAgent) ?? 0) * 1000;
    },
  };
}
