// The local scraper, OCR service, transcriber, model and sources of links, unless the settings name others.
import type { Services, StartServices } from '../platform/stack.ts';
import { startSources } from './start-sources.ts';

/**
 * Starts those local services whose URL is not among the settings: SCRAPER_URL, OCR_URL, DEEPGRAM_URL and LLM_URL name
 * others, GOOGLE_SERVICE_ACCOUNT and NOTION_TOKEN lead to Google's and Notion's own.
 */
export async function startServices({ env: given, keys, apiUrl }: Parameters<StartServices>[0]): Promise<Services> {
  const env = { ...given };
  const started: { stop(): Promise<void> }[] = [];
  const stop = async () => {
    await Promise.all(started.map((service) => service.stop()));
  };
  try {
    if (!env.SCRAPER_URL) {
      env.SCRAPER_AUTH_TOKEN ??= keys.scraperToken;
      // Loaded here, because a stack that asks other services need not read this one's libraries.
      const { startScraper } = await import('./scraper/server.ts');
      const scraper = await startScraper({ env });
      started.push(scraper);
      env.SCRAPER_URL = scraper.url;
      // Images and PDFs lie where the pages do.
      if (env.SCRAPER_ALLOW_HOSTS) env.FEED_ALLOW_HOSTS ??= env.SCRAPER_ALLOW_HOSTS;
    }
    if (!env.OCR_URL) {
      env.OCR_AUTH_TOKEN ??= keys.ocrToken;
      const { startOcr } = await import('./ocr/server.ts');
      // The documents lie in this stack's own Storage.
      const allowed = [new URL(apiUrl).host, env.OCR_ALLOW_HOSTS].filter(Boolean).join(',');
      const ocr = await startOcr({ env: { ...env, OCR_ALLOW_HOSTS: allowed } });
      started.push(ocr);
      env.OCR_URL = ocr.url;
    }
    if (!env.DEEPGRAM_URL) {
      env.DEEPGRAM_API_KEY ??= keys.transcriberToken;
      const { startTranscriber } = await import('./transcriber/server.ts');
      const allowed = [new URL(apiUrl).host, env.DEEPGRAM_ALLOW_HOSTS].filter(Boolean).join(',');
      const transcriber = await startTranscriber({ env: { ...env, DEEPGRAM_ALLOW_HOSTS: allowed } });
      started.push(transcriber);
      env.DEEPGRAM_URL = transcriber.url;
    }
    if (!env.LLM_URL) {
      env.LLM_AUTH_TOKEN ??= keys.llmToken;
      env.LLM_MODEL ??= 'local';
      env.LLM_EMBEDDING_MODEL ??= 'local';
      // Texts on one subject share fewer words than meanings.
      if (env.ARTICLES_SCORE_BY !== 'model') env.ARTICLES_SCORE_THRESHOLD ??= '0.05';
      const { startModel } = await import('./model/server.ts');
      const model = await startModel({ env: { ...env, LLM_CALLBACK_URL: `${apiUrl}/functions/v1/millrace/callback` } });
      started.push(model);
      env.LLM_URL = `${model.url}/v1`;
    }
    const sources = await startSources({ env, keys });
    started.push(sources);
    return { env: sources.env, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
