import OpenAI from 'openai';
import type {
  ResponseCreateParamsNonStreaming as Asked,
  Response as ModelResponse,
} from 'openai/resources/responses/responses';
import { storable } from '../engine/storable.ts';
import { MisconfiguredError } from '../errors.ts';
import type { HandlerContext } from '../stage/stage.ts';
import { traceHeaders } from '../trace.ts';
import { fromChat, toChat } from './chat-form.ts';
import { createMessage } from './messages-client.ts';
import { toMessages } from './messages-form.ts';
import { apiError, bodyOf, faultInside, modelError, refusedParameter } from './model-errors.ts';
import type { Provider } from './model-settings.ts';
import { sentOnce } from './sent-once.ts';

/** Which of the parameters below a model has refused, by its address and name, for as long as this isolate lives. */
const refusedBy = new Map<string, Set<string>>();

/**
 * The official client for an OpenAI-compatible API; it does not retry.
 *
 * @internal
 */
export function modelClient(provider: Pick<Provider, 'url' | 'token'>): OpenAI {
  const url = new URL(provider.url);
  if (url.pathname === '/') url.pathname = '/v1';
  return new OpenAI({
    baseURL: url.href,
    // A local model may need no key, but the SDK insists on one.
    apiKey: provider.token ?? 'none',
    // The engine retries: it knows the policy and survives a restart.
    maxRetries: 0,
    // A redirect is refused: it could take the key to any host.
    fetchOptions: { redirect: 'manual' },
    fetch: (url, init) => fetch(url, typeof init?.body === 'string' ? { ...init, body: sentOnce(init.body) } : init),
  });
}

interface Sent {
  signal: AbortSignal;
  key: string;
}

/**
 * Asks a model once, by the API that its settings name; a parameter that it refuses, and that an answer does not hang on, is left
 * out from then on. No text of the request holds a NUL or half of a surrogate pair. Throws a StageError.
 *
 * @internal
 */
export async function createResponse(
  asked: Asked,
  provider: Provider,
  context: Pick<HandlerContext, 'log' | 'traceId' | 'retryCount'>,
  { signal, key }: Sent,
): Promise<ModelResponse> {
  const sent = { signal, headers: { ...traceHeaders(context), 'Idempotency-Key': key } };
  if (provider.api === 'messages') return createMessage(toMessages(asked, context.retryCount), provider, sent);
  const whose = `${provider.url} ${provider.model}`;
  const refused = refusedBy.get(whose) ?? new Set();
  refusedBy.set(whose, refused);
  for (;;) {
    const body = storable(without(refused, asked));
    try {
      const client = modelClient(provider);
      if (provider.api === 'chat') {
        const asking = client.chat.completions.create(toChat(body), sent);
        return checkedChat(await bodyOf(asking, provider.prefix), provider);
      }
      return checked(await bodyOf(client.responses.create(body, sent), provider.prefix), provider);
    } catch (error) {
      const name = namedByResponses(refusedParameter(error));
      if (name === null || !mayGo(name, body)) throw modelError(error, provider.prefix);
      refused.add(name);
      context.log.warn('the model refuses a parameter, which is left out from now on', { parameter: name });
    }
  }
}

/** Returns the name that Responses give a parameter: chat completions have another name for the bound of tokens. */
const namedByResponses = (name: string | null) => (name === 'max_completion_tokens' ? 'max_output_tokens' : name);

/** Returns the response, or throws where the answer is no response: servers of other protocols may answer 200, too. */
function checked(response: ModelResponse, { prefix }: Provider): ModelResponse {
  if (response?.object === 'response') return response;
  const fault = faultInside(response);
  if (fault) throw apiError(fault, prefix);
  throw new MisconfiguredError(
    `${prefix}_URL answers, but not as OpenAI’s Responses API does: set the base URL of one that offers POST /responses, or ` +
      `correct ${prefix}_API.`,
  );
}

function checkedChat(completion: OpenAI.ChatCompletion, { prefix }: Provider): ModelResponse {
  if (Array.isArray(completion?.choices) && completion.choices.length > 0) return fromChat(completion);
  const fault = faultInside(completion);
  if (fault) throw apiError(fault, prefix);
  throw new MisconfiguredError(
    `${prefix}_URL answers, but not as chat completions do: set the base URL of an API that offers POST /chat/completions, or ` +
      `correct ${prefix}_API.`,
  );
}

function without(refused: ReadonlySet<string>, asked: Asked): Asked {
  const given = Object.entries(asked).filter(([name]) => !(refused.has(name) && mayGo(name, asked)));
  return Object.fromEntries(given) as unknown as Asked;
}

/** Returns whether the answer is the same without this parameter. */
function mayGo(name: string, asked: Asked): boolean {
  if (name === 'metadata' || name === 'max_output_tokens') return asked[name] !== undefined;
  return (name === 'store' || name === 'background') && asked[name] === false;
}
