import { createHash } from 'node:crypto';
import { Hono } from 'hono';
import { tokenMatches } from '../http/auth-token.ts';
import { answer } from './answer.ts';
import { ApiError } from './api-error.ts';
import { countTokens } from './conversation.ts';
import { type CachedTokens, type MessagesRequest, messageOf, readMessagesRequest } from './messages-request.ts';
import { newId } from './response-objects.ts';

/** Prompts shorter than this are cached by no model of Anthropic's. */
const leastCached = 512;
/** How many beginnings of prompts are remembered. */
const mostCached = 1_000;

const typeOf: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  409: 'conflict_error',
};

/**
 * A stand-in of Anthropic's Messages API, answered by extracting from the prompt: no more of it than `POST /messages` with schema,
 * tools and prompt caching.
 */
export function messagesApi(token: string | undefined): Hono {
  const cache = new Set<string>();
  const app = new Hono();
  app.use(async (c, next) => {
    const key = c.req.header('x-api-key');
    if (!tokenMatches(key && `Bearer ${key}`, token)) throw new ApiError(401, 'invalid x-api-key');
    if (c.req.header('anthropic-version') !== '2023-06-01') {
      throw new ApiError(400, 'anthropic-version: header is required');
    }
    return next();
  });
  app.post('/', async (c) => {
    const body = await c.req.json().catch(() => {
      throw new ApiError(400, 'The body is not valid JSON.');
    });
    const { read, task } = readMessagesRequest(body);
    return c.json(messageOf(read, task, answer(task), cachedOf(read, cache)));
  });
  app.onError((error, c) => {
    const status = error instanceof ApiError ? error.status : 500;
    const type = typeOf[status] ?? 'api_error';
    return c.json({ type: 'error', error: { type, message: error.message }, request_id: newId('req') }, status);
  });
  return app;
}

/** Returns the cached beginning of a prompt: its instructions where they ask for that and are long enough. */
function cachedOf({ model, system, tools }: MessagesRequest, cache: Set<string>): CachedTokens {
  const asked = Array.isArray(system) ? system.filter((part) => part.cache_control) : [];
  const prefix = JSON.stringify([model, tools ?? [], asked]);
  const tokens = countTokens(asked.map((part) => part.text).join('\n'));
  if (tokens < leastCached) return { tokens: 0, isRead: false };
  const key = createHash('sha256').update(prefix).digest('hex');
  const isRead = cache.has(key);
  if (cache.size >= mostCached) cache.clear();
  cache.add(key);
  return { tokens, isRead };
}
