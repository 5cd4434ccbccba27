// The scraper and the model behind proxies, and proxies for what comes back to the project.
import { randomBytes } from 'node:crypto';
import { startModel } from '../../../local/services/model/server.ts';
import type { ScrapeLimits } from '../../../local/services/scraper/crawl-site.ts';
import { startScraper } from '../../../local/services/scraper/server.ts';
import { type FaultProxy, startFaultProxy } from '../faults/fault-proxy.ts';

export interface ProxiedServices {
  /** Settings that lead the functions through the proxies. */
  env: Record<string, string>;
  toScraper: FaultProxy;
  toModel: FaultProxy;
  /** The texts that the services report. */
  callbacks: FaultProxy;
  /** The calls that functions ask of the project, where they take its URL from PROJECT_PROXY_URL. */
  toProject: FaultProxy;
  /** Leads the last two to a project. */
  connect(apiUrl: string): void;
  stop(): Promise<void>;
}

/** Starts the services; `env` as for their own settings. They try a callback once, since the poller is there too. */
export async function startProxiedServices(
  env: Record<string, string>,
  limits: Partial<ScrapeLimits> = {},
): Promise<ProxiedServices> {
  const [toScraper, toModel, callbacks, toProject] = await Promise.all([
    startFaultProxy(),
    startFaultProxy(),
    startFaultProxy(),
    startFaultProxy(),
  ]);
  const callbackUrl = `${callbacks.url}/functions/v1/millrace/callback`;
  const WEBHOOK_SECRET = `whsec_${randomBytes(24).toString('base64')}`;
  const signed = { ...env, WEBHOOK_SECRET, LLM_CALLBACK_URL: callbackUrl };
  const scraper = await startScraper({ env: signed, limits, callbackDelaysMs: [] });
  const model = await startModel({ env: signed, callbackDelaysMs: [] });
  toScraper.target = scraper.url;
  toModel.target = model.url;
  return {
    env: {
      WEBHOOK_SECRET,
      SCRAPER_URL: toScraper.url,
      LLM_URL: toModel.url,
      LLM_MODEL: 'local',
      JOB_CALLBACK_URL: callbackUrl,
      PROJECT_PROXY_URL: toProject.url,
    },
    toScraper,
    toModel,
    callbacks,
    toProject,
    connect(apiUrl) {
      callbacks.target = apiUrl;
      toProject.target = apiUrl;
    },
    async stop() {
      await Promise.all([scraper, model, toScraper, toModel, callbacks, toProject].map((part) => part.stop()));
    },
  };
}
