// The local stand-ins of Google Sheets and Notion, unless the settings name the real ones.
import path from 'node:path';
import type { Services, StartServices } from '../platform/stack.ts';

/** Where the files lie that the stand-ins serve, unless SOURCES_FOLDER names another folder. */
export const sourcesFolder = path.join(import.meta.dirname, '..', 'sources');

/**
 * Starts a stand-in for Google Sheets where the settings have no GOOGLE_SERVICE_ACCOUNT, and one for Notion where they have no
 * NOTION_TOKEN. Both serve the files of one folder, each by its name: ID.csv and ID.json.
 */
export async function startSources({
  env: given,
  keys,
}: Pick<Parameters<StartServices>[0], 'env' | 'keys'>): Promise<Services> {
  const env = { ...given };
  const folder = path.resolve(env.SOURCES_FOLDER || sourcesFolder);
  const started: { stop(): Promise<void> }[] = [];
  if (!env.GOOGLE_SERVICE_ACCOUNT) {
    const { startSheets } = await import('./sheets/server.ts');
    const sheets = await startSheets({ folder });
    started.push(sheets);
    Object.assign(env, { SHEETS_API_URL: sheets.url, GOOGLE_SERVICE_ACCOUNT: sheets.serviceAccount });
  }
  if (!env.NOTION_TOKEN) {
    const { startNotion } = await import('./notion/server.ts');
    const notion = await startNotion({ folder, token: keys.notionToken });
    started.push(notion);
    Object.assign(env, { NOTION_API_URL: notion.url, NOTION_TOKEN: keys.notionToken });
  }
  return {
    env,
    async stop() {
      await Promise.all(started.map((service) => service.stop()));
    },
  };
}
