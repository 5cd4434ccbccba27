// The local scraper, OCR service, transcriber and model, unless the settings name others.
import type { Keys } from '../platform/keys.ts';

export interface Services {
  /** The functions' settings: those given, completed by what leads to the local services. */
  env: Record<string, string>;
  stop(): Promise<void>;
}

export interface ServicesOptions {
  env: Record<string, string>;
  keys: Keys;
  /** Whether local services may be started. */
  local: boolean;
  apiUrl: string;
}

/** Starts those local services whose URL is not among the settings. */
export async function startServices({ env: given, keys, local, apiUrl }: ServicesOptions): Promise<Services> {
  const env: Record<string, string> = { WEBHOOK_SECRET: keys.webhookSecret, ...given };
  const started: { stop(): Promise<void> }[] = [];
  const stop = async () => {
    await Promise.all(started.map((service) => service.stop()));
  };
  try {
    if (local && !env.SCRAPER_URL) {
      env.SCRAPER_AUTH_TOKEN ??= keys.scraperToken;
      // Loaded here, because a stack without services need not read their libraries.
      const { startScraper } = await import('./scraper/server.ts');
      const scraper = await startScraper({ env });
      started.push(scraper);
      env.SCRAPER_URL = scraper.url;
    }
    if (local && !env.OCR_URL) {
      env.OCR_AUTH_TOKEN ??= keys.ocrToken;
      const { startOcr } = await import('./ocr/server.ts');
      // The documents lie in this stack's own Storage.
      const allowed = [new URL(apiUrl).host, env.OCR_ALLOW_HOSTS].filter(Boolean).join(',');
      const ocr = await startOcr({ env: { ...env, OCR_ALLOW_HOSTS: allowed } });
      started.push(ocr);
      env.OCR_URL = ocr.url;
    }
    if (local && !env.DEEPGRAM_URL) {
      env.DEEPGRAM_API_KEY ??= keys.transcriberToken;
      const { startTranscriber } = await import('./transcriber/server.ts');
      const allowed = [new URL(apiUrl).host, env.DEEPGRAM_ALLOW_HOSTS].filter(Boolean).join(',');
      const transcriber = await startTranscriber({ env: { ...env, DEEPGRAM_ALLOW_HOSTS: allowed } });
      started.push(transcriber);
      env.DEEPGRAM_URL = transcriber.url;
    }
    if (local && !env.LLM_URL) {
      env.LLM_AUTH_TOKEN ??= keys.llmToken;
      env.LLM_MODEL ??= 'local';
      const { startModel } = await import('./model/server.ts');
      const model = await startModel({ env: { ...env, LLM_CALLBACK_URL: `${apiUrl}/functions/v1/job-complete` } });
      started.push(model);
      env.LLM_URL = `${model.url}/v1`;
    }
    return { env, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
