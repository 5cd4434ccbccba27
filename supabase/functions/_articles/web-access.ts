import { z } from 'zod';
import { type Env, readSettings } from '../_millrace/mod.ts';
import { parseHosts } from '../_services/public-hosts.ts';
import type { WebFileOptions } from '../_services/web-file.ts';

/** Which hosts inside of a network articles, their images and feeds may come from. */
export const webAccessSettings = z.object({
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
    .describe('list hosts or host:port that may be read though they are not on the public internet, or remove it'),
});

/** What fetchWebFile() is told of it. Throws a MisconfiguredError. */
export function allowedHosts(env: Env): WebFileOptions['allowed'] {
  return { hosts: readSettings(webAccessSettings, env).FEED_ALLOW_HOSTS, setting: 'FEED_ALLOW_HOSTS' };
}
