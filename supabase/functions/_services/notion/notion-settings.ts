import { z } from 'zod';
import { authToken, httpUrl } from '../../_millrace/mod.ts';

/** Settings for reading Notion. */
export const notionSettings = z.object({
  NOTION_TOKEN: authToken
    .regex(/^\S+$/, 'must be one word')
    .describe('set the token of the integration that the data sources are shared with'),
  NOTION_API_URL: httpUrl
    .default('https://api.notion.com')
    .describe('set the URL of an API that speaks Notion’s protocol, or remove it'),
});
