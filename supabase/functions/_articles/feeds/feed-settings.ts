import { z } from 'zod';
import { wholeNumber } from '../../_millrace/mod.ts';
import { parseHosts } from '../../_millrace/public-hosts.ts';

const most = 1000;

/** Settings for polls of feeds and sitemaps. */
export const feedSettings = z.object({
  FEED_ALLOW_HOSTS: z
    .string()
    .default('')
    .transform((text, context) => {
      try {
        return parseHosts(text);
      } catch (error) {
        context.addIssue({ code: 'custom', message: (error as Error).message });
        return z.NEVER;
      }
    })
    .describe('list hosts or host:port by commas, or remove it'),
  SOURCE_NEW_URLS: wholeNumber(1, most)
    .default(500)
    .describe(`set how many new addresses one poll takes, at most ${most}, or remove it`),
});
