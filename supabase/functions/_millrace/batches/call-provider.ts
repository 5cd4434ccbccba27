import { excerpt, messageOf, RetriableError } from '../errors.ts';
import { apiError } from '../model/model-errors.ts';
import type { Provider } from '../model/model-settings.ts';
import { sentOnce } from '../model/sent-once.ts';
import { parseJson } from '../parse-json.ts';

/** The version of Anthropic's API that these requests are written for. */
const version = '2023-06-01';

/** The most characters of an answer that is read as a whole: a list of a hundred batches has some 100,000. */
const MOST_TEXT = 16_000_000;
/** The most characters of a line: an answer of 128,000 tokens has some 600,000. A longer line is an empty one. */
const LONGEST_LINE = 4_000_000;

export interface ProviderCall {
  signal: AbortSignal;
  method?: 'GET' | 'POST';
  /** Sent as JSON, unless it is a form. */
  body?: unknown;
  key?: string;
}

/** Calls a provider's API at a path below /v1, and returns its JSON. Throws a StageError. */
export async function callProvider(path: string, provider: Provider, call: ProviderCall): Promise<unknown> {
  const answer = await open(path, provider, call);
  return parseJson(await readAll(answer, provider, call.signal));
}

/**
 * Reads the lines of a file at a provider, as they come. A file that ends early ends with a part of a line. Throws a
 * StageError.
 */
export async function* linesAt(path: string, provider: Provider, call: ProviderCall): AsyncGenerator<string> {
  const answer = await open(path, provider, call);
  let parts: string[] = [];
  let length = 0;
  const add = (part: string) => {
    length += part.length;
    if (length > LONGEST_LINE) parts = [];
    else parts.push(part);
  };
  const take = () => {
    const line = parts.join('').trim() || (length > LONGEST_LINE ? '""' : '');
    parts = [];
    length = 0;
    return line;
  };
  for await (const text of textsOf(answer, provider, call.signal)) {
    const [first = '', ...others] = text.split('\n');
    add(first);
    for (const other of others) {
      const line = take();
      if (line) yield line;
      add(other);
    }
  }
  const line = take();
  if (line) yield line;
}

/** The text of an answer in parts, as they come. */
async function* textsOf({ body }: Response, provider: Provider, signal: AbortSignal): AsyncGenerator<string> {
  if (!body) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (error) {
    throw unreachable(error, provider, signal);
  } finally {
    await reader.cancel().catch(() => {});
  }
}

async function open(path: string, provider: Provider, { signal, method, body, key }: ProviderCall): Promise<Response> {
  const base = new URL(provider.url);
  if (base.pathname === '/') base.pathname = '/v1';
  const isForm = body instanceof FormData || body instanceof Blob;
  let answer: Response;
  try {
    answer = await fetch(`${base.href}${path}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...authorization(provider),
        ...(!(body instanceof FormData) && body !== undefined && { 'content-type': 'application/json' }),
        ...(key && { 'idempotency-key': key }),
      },
      ...(body !== undefined && { body: isForm ? (body as BodyInit) : sentOnce(JSON.stringify(body)) }),
      // The key is for this provider alone.
      redirect: 'manual',
      signal,
    });
  } catch (error) {
    throw unreachable(error, provider, signal);
  }
  if (answer.ok) return answer;
  const text = await readAll(answer, provider, signal);
  const error = (parseJson(text) as { error?: Record<string, unknown> } | null)?.error;
  const said = (word: string) => (typeof error?.[word] === 'string' ? (error[word] as string) : null);
  const { status, headers } = answer;
  const message = said('message') ?? excerpt(text, 500);
  throw apiError(
    { status, headers, message, code: said('code'), type: said('type'), param: said('param') },
    provider.prefix,
  );
}

function authorization({ api, token }: Provider): Record<string, string> {
  if (api === 'messages') return { 'anthropic-version': version, ...(token && { 'x-api-key': token }) };
  return token ? { authorization: `Bearer ${token}` } : {};
}

async function readAll(answer: Response, provider: Provider, signal: AbortSignal): Promise<string> {
  let text = '';
  for await (const part of textsOf(answer, provider, signal)) {
    text += part;
    if (text.length > MOST_TEXT) throw new RetriableError('invalid_output', 'The provider’s answer is too long.');
  }
  return text;
}

function unreachable(error: unknown, { prefix }: Provider, signal: AbortSignal): unknown {
  if (signal.aborted) return error;
  const said = `The model at ${prefix}_URL cannot be reached: ${messageOf(error)}`;
  return new RetriableError('model_unreachable', 'The model cannot be reached.', undefined, said);
}
