import { wholeNumber } from '../../_millrace/mod.ts';
import { webAccessSettings } from '../web-access.ts';

const most = 1000;

/** What polls of feeds and sitemaps need to know. */
export const feedSettings = webAccessSettings.extend({
  SOURCE_NEW_URLS: wholeNumber(1, most)
    .default(500)
    .describe(`set how many new addresses one poll takes, at most ${most}, or remove it`),
});
