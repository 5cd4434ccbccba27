import { setMaxListeners } from 'node:events';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { tokenMatches } from '../http/auth-token.ts';
import { listen, type Service } from '../http/listen.ts';
import { readWebhookSecrets } from '../http/signed-callback.ts';
import { answer } from './answer.ts';
import { ApiError } from './api-error.ts';
import { readChatRequest } from './chat-request.ts';
import { wholeText } from './conversation.ts';
import { embeddings } from './embeddings-request.ts';
import { messagesApi } from './messages-api.ts';
import { answeredResponse, chatCompletion, queuedResponse } from './response-objects.ts';
import { itemsOf, readResponsesRequest, toTask } from './responses-request.ts';
import { StoredResponses } from './stored-responses.ts';

export interface ModelOptions {
  /** Reads LLM_AUTH_TOKEN at the start; LLM_CALLBACK_URL and WEBHOOK_SECRET whenever an event is sent. */
  env: Record<string, string | undefined>;
  port?: number;
  /** How long a background response takes. */
  delayMs?: number;
  /** Pauses between the tries of an event. */
  callbackDelaysMs?: number[];
}

/** The only model there is; requests may name any other, which makes no difference. */
const modelName = 'local-extract';
const bodyBytes = 4 * 1024 * 1024;

/**
 * Starts a model that speaks a part of the OpenAI API, and a stand-in of Anthropic's Messages API. Both answer by extracting from
 * the prompt.
 * Resolves to its base URL (with and without /v1) and the way to stop it; rejects when a setting cannot be used.
 */
export async function startModel(options: ModelOptions): Promise<Service> {
  const { env, delayMs = 50, callbackDelaysMs = [500, 1000, 2000, 4000] } = options;
  readWebhookSecrets(env.WEBHOOK_SECRET);
  const ending = new AbortController();
  // Every callback under way listens for the end.
  setMaxListeners(0, ending.signal);
  const stored = new StoredResponses({ env, delayMs, callbackDelaysMs, stop: ending.signal });
  const service = await listen(modelApp(stored, env.LLM_AUTH_TOKEN).fetch, options.port);
  return {
    url: service.url,
    stop() {
      ending.abort();
      stored.stop();
      return service.stop();
    },
  };
}

function modelApp(stored: StoredResponses, token: string | undefined): Hono {
  const api = new Hono();
  api.route('/messages', messagesApi(token));
  api.use(async (c, next) => {
    if (tokenMatches(c.req.header('authorization'), token)) return next();
    const message = 'Incorrect API key provided: the Authorization header does not carry LLM_AUTH_TOKEN.';
    throw new ApiError(401, message, null, 'invalid_api_key');
  });
  api.use(bodyLimit({ maxSize: bodyBytes, onError: () => reject(`The body is longer than ${bodyBytes} bytes.`) }));
  api.post('/responses', async (c) => {
    const key = c.req.header('idempotency-key');
    const read = readResponsesRequest(await readJson(c.req.raw));
    const known = read.background ? stored.findByKey(key, read) : undefined;
    if (known) return c.json(known);
    const before = read.previous_response_id ? stored.itemsOf(read.previous_response_id) : [];
    const task = toTask(read, before);
    const queued = queuedResponse(read);
    const finished = answeredResponse(queued, answer(task), wholeText(task.conversation));
    const items = [...before, ...itemsOf(read)];
    if (read.background) stored.work(queued, finished, items, { key, request: read });
    else if (read.store !== false) stored.keep(finished, items);
    return c.json(read.background ? queued : finished);
  });
  api.get('/responses/:id', (c) => c.json(stored.get(c.req.param('id'))));
  api.post('/responses/:id/cancel', (c) => c.json(stored.cancel(c.req.param('id'))));
  api.post('/chat/completions', async (c) => {
    const { read, task } = readChatRequest(await readJson(c.req.raw));
    return c.json(chatCompletion(read.model, answer(task), wholeText(task.conversation)));
  });
  api.post('/embeddings', async (c) => c.json(embeddings(await readJson(c.req.raw))));
  api.get('/models', (c) =>
    c.json({ object: 'list', data: [{ id: modelName, object: 'model', created: 0, owned_by: 'local' }] }),
  );
  // Clients differ in whether /v1 belongs to the base URL.
  const app = new Hono().route('/v1', api).route('/', api);
  app.notFound((c) => c.json(new ApiError(404, `Unknown request URL: ${c.req.method} ${c.req.path}.`).toBody(), 404));
  app.onError((error, c) => {
    if (error instanceof ApiError) return c.json(error.toBody(), error.status);
    return c.json({ error: { message: error.message, type: 'server_error', param: null, code: null } }, 500);
  });
  return app;
}

async function readJson(request: Request): Promise<unknown> {
  return request.json().catch(() => reject('We could not parse the JSON body of your request.'));
}

function reject(message: string): never {
  throw new ApiError(400, message);
}
