// The services of the examples behind proxies, so that a campaign can take them away, and their callbacks.
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { startModel } from '../../local/services/model/server.ts';
import { startOcr } from '../../local/services/ocr/server.ts';
import { startScraper } from '../../local/services/scraper/server.ts';
import { startTranscriber } from '../../local/services/transcriber/server.ts';
import { type Call, type Fate, type FaultProxy, send, startFaultProxy } from '../support/faults/fault-proxy.ts';

export const serviceNames = ['scraper', 'ocr', 'transcriber', 'model'] as const;
export type ServiceName = (typeof serviceNames)[number];

/** How callbacks fare at the moment. */
export type CallbackMood = 'passed on' | 'twice' | 'late' | 'lost';

/** So long a service takes at least, so that faults find functions at work. */
const answerMs = 30;
const outOfOrder = { status: 503, json: { error: { code: 'out_of_order', message: 'this service is out of order' } } };

export class ChaosServices {
  /** Settings that lead the functions through the proxies. */
  readonly env: Record<string, string>;
  mood: CallbackMood = 'passed on';
  readonly dead = new Set<ServiceName>();
  /** Callbacks that came while they were held back. */
  readonly late: Call[] = [];
  /** The last one that came by. */
  last: Call | undefined;
  /** By idempotency key and service, the jobs that it was answered with. */
  readonly jobs = new Map<string, Set<string>>();
  /** By callback, how often the project accepted it. */
  readonly accepted = new Map<string, number>();
  readonly #apiUrl: string;
  readonly #parts: { stop(): Promise<void> }[];

  private constructor(apiUrl: string, env: Record<string, string>, parts: { stop(): Promise<void> }[]) {
    this.#apiUrl = apiUrl;
    this.env = env;
    this.#parts = parts;
  }

  /** Starts services that call the project at `apiUrl`, and may read Storage at these addresses and sites at these hosts. */
  static async start(apiUrl: string, storageUrls: string[], siteHosts: string): Promise<ChaosServices> {
    const callbacks = await startFaultProxy();
    const storageHosts = storageUrls.map((url) => new URL(url).host).join(',');
    const callbackUrl = `${callbacks.url}/functions/v1/millrace/callback`;
    const own = {
      WEBHOOK_SECRET: `whsec_${randomBytes(24).toString('base64')}`,
      SCRAPER_ALLOW_HOSTS: siteHosts,
      OCR_ALLOW_HOSTS: storageHosts,
      DEEPGRAM_ALLOW_HOSTS: storageHosts,
      DEEPGRAM_API_KEY: 'chaos',
      LLM_CALLBACK_URL: callbackUrl,
    };
    // One try a callback: the poller is there too.
    const options = { env: own, callbackDelaysMs: [] };
    const started = await Promise.all([
      startScraper(options),
      startOcr(options),
      startTranscriber(options),
      startModel(options),
    ]);
    const proxies = await Promise.all(serviceNames.map(() => startFaultProxy()));
    const [scraper, ocr, transcriber, model] = proxies.map(({ url }) => url) as [string, string, string, string];
    const env = {
      ...own,
      SCRAPER_URL: scraper,
      OCR_URL: ocr,
      DEEPGRAM_URL: transcriber,
      LLM_URL: `${model}/v1`,
      LLM_MODEL: 'local',
      LLM_EMBEDDING_MODEL: 'local',
      // Texts on one subject share fewer words than meanings.
      ARTICLES_SCORE_THRESHOLD: '0.05',
      JOB_CALLBACK_URL: callbackUrl,
    };
    const services = new ChaosServices(apiUrl, env, [...proxies, callbacks, ...started]);
    for (const [place, name] of serviceNames.entries()) {
      const [proxy, service] = [proxies[place] as FaultProxy, started[place] as { url: string }];
      proxy.target = service.url;
      proxy.decide = (call) => services.#serve(name, service.url, call);
    }
    callbacks.target = apiUrl;
    callbacks.decide = (call) => services.#callBack(call);
    return services;
  }

  async #serve(name: ServiceName, target: string, call: Call): Promise<Fate> {
    await pause(answerMs);
    // The line is cut, as where nothing listens any more.
    if (this.dead.has(name)) throw new Error(`${name} is dead`);
    const key = call.headers['idempotency-key'];
    if (call.method !== 'POST' || !call.path.endsWith('/jobs') || !key) return 'pass';
    const { status, body } = await send(target, call);
    const json = JSON.parse(body.toString());
    if (json.job_id) {
      const known = this.jobs.get(`${name} ${key}`) ?? new Set();
      this.jobs.set(`${name} ${key}`, known.add(json.job_id));
    }
    return { status, json };
  }

  async #callBack(call: Call): Promise<Fate> {
    this.last = call;
    if (this.mood === 'lost') return outOfOrder;
    if (this.mood === 'late') {
      this.late.push(call);
      return outOfOrder;
    }
    if (this.mood === 'twice') void this.deliver(call).catch(() => {});
    return this.deliver(call);
  }

  /** Hands a callback to the project, and counts it when it is accepted. */
  async deliver(call: Call): Promise<{ status: number; json: { verdict?: string } }> {
    const { status, body } = await send(this.#apiUrl, call);
    const json = body.length > 0 ? JSON.parse(body.toString()) : {};
    if (json.verdict === 'accepted') {
      const name = String(call.headers['webhook-id'] ?? call.path);
      this.accepted.set(name, (this.accepted.get(name) ?? 0) + 1);
    }
    return { status, json };
  }

  /** Delivers what was held back. Calls that find nobody are lost, as at a service that gives up. */
  async deliverLate(): Promise<void> {
    for (const call of this.late.splice(0)) await this.deliver(call).catch(() => {});
  }

  /** All is well again, and nothing is known of the campaign before. */
  forget(): void {
    this.mood = 'passed on';
    this.dead.clear();
    this.late.length = 0;
    this.last = undefined;
    this.jobs.clear();
    this.accepted.clear();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#parts.map((part) => part.stop()));
  }
}
