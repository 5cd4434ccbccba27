import { isDeepStrictEqual } from 'node:util';
import type { Response } from 'openai/resources/responses/responses';
import { deliverSigned, readWebhookSecrets } from '../http/signed-callback.ts';
import { ApiError } from './api-error.ts';
import { newId } from './response-objects.ts';
import type { InputItem, ResponsesRequest } from './responses-request.ts';

export interface StoredResponsesOptions {
  /** Read whenever an event is sent: LLM_CALLBACK_URL and WEBHOOK_SECRET. */
  env: Record<string, string | undefined>;
  /** How long a background response takes. */
  delayMs: number;
  callbackDelaysMs: number[];
  stop: AbortSignal;
}

interface Stored {
  response: Response;
  /** The conversation up to this response, for one that goes on from it. */
  items: InputItem[];
  storedAt: number;
  timer?: NodeJS.Timeout;
}

const keptMs = 60 * 60 * 1000;

/** The responses of one model service, in memory for an hour, and the work on those in the background. */
export class StoredResponses {
  readonly #options: StoredResponsesOptions;
  readonly #byId = new Map<string, Stored>();
  readonly #byKey = new Map<string, { id: string; request: ResponsesRequest }>();

  constructor(options: StoredResponsesOptions) {
    this.#options = options;
  }

  /** Returns the response that an idempotency key has already made. Throws ApiError 409 when that was of another request. */
  findByKey(key: string | undefined, request: ResponsesRequest): Response | undefined {
    const known = key === undefined ? undefined : this.#byKey.get(key);
    if (!known || isDeepStrictEqual(known.request, request)) return known && this.#byId.get(known.id)?.response;
    const message = 'The Idempotency-Key came with another request before: send the same one, or another key.';
    throw new ApiError(409, message, null, 'idempotency_key_reused');
  }

  /** Returns the stored response of that id. Throws ApiError 404. */
  get(id: string): Response {
    return this.#stored(id).response;
  }

  /** Returns the conversation up to and with the response of that id. Throws ApiError 404. */
  itemsOf(id: string): InputItem[] {
    const { items, response } = this.#stored(id);
    return [...items, ...(response.output as InputItem[])];
  }

  /** Keeps a finished response. */
  keep(response: Response, items: InputItem[]): void {
    this.#prune();
    this.#byId.set(response.id, { response, items, storedAt: Date.now() });
  }

  /** Keeps a queued response and finishes it after a while; an event tells the world. */
  work(
    queued: Response,
    finished: Response,
    items: InputItem[],
    origin: { key?: string; request: ResponsesRequest },
  ): void {
    const { key, request } = origin;
    this.keep(queued, items);
    if (key !== undefined) this.#byKey.set(key, { id: queued.id, request });
    const stored = this.#stored(queued.id);
    // The second timer starts in the first: two side by side could fire in the wrong order on a busy machine.
    const half = this.#options.delayMs / 2;
    stored.timer = setTimeout(() => {
      stored.response = { ...queued, status: 'in_progress' };
      stored.timer = setTimeout(() => {
        stored.response = finished;
        void this.#announce(finished);
      }, half);
    }, half);
  }

  /** Cancels a background response that still runs; any other stays as it is. Throws ApiError 404 or 400. */
  cancel(id: string): Response {
    const stored = this.#stored(id);
    const { background, status } = stored.response;
    if (!background) throw new ApiError(400, 'Only background responses can be cancelled.', 'response_id');
    if (status === 'queued' || status === 'in_progress') {
      clearTimeout(stored.timer);
      stored.response = { ...stored.response, status: 'cancelled' };
      void this.#announce(stored.response);
    }
    return stored.response;
  }

  /** Ends all work. */
  stop(): void {
    for (const { timer } of this.#byId.values()) clearTimeout(timer);
  }

  async #announce({ id, status }: Response): Promise<void> {
    const { env, callbackDelaysMs, stop } = this.#options;
    const url = env.LLM_CALLBACK_URL;
    const secrets = readWebhookSecrets(env.WEBHOOK_SECRET);
    if (!url || secrets.length === 0) return;
    const eventId = newId('evt');
    const created_at = Math.floor(Date.now() / 1000);
    const payload = { id: eventId, object: 'event', created_at, type: `response.${status}`, data: { id } };
    await deliverSigned({ url, id: eventId, payload, secrets }, callbackDelaysMs, stop);
  }

  #stored(id: string): Stored {
    const stored = this.#byId.get(id);
    if (!stored) throw new ApiError(404, `Response with id '${id}' not found.`, 'response_id');
    return stored;
  }

  #prune(): void {
    const horizon = Date.now() - keptMs;
    for (const [id, { storedAt }] of this.#byId) if (storedAt < horizon) this.#byId.delete(id);
    for (const [key, { id }] of this.#byKey) if (!this.#byId.has(id)) this.#byKey.delete(key);
  }
}
