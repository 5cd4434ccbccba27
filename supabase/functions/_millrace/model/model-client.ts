import OpenAI from 'openai';
import type {
  ResponseCreateParamsNonStreaming as Asked,
  Response as ModelResponse,
} from 'openai/resources/responses/responses';
import { storable } from '../engine/storable.ts';
import { MisconfiguredError } from '../errors.ts';
import type { HandlerContext } from '../stage/stage.ts';
import { traceHeaders } from '../trace.ts';
import { modelError, refusedParameter } from './model-errors.ts';
import type { ModelSettings } from './model-settings.ts';

/** Which of the parameters below a model has refused, by its address and name, for as long as this isolate lives. */
const refusedBy = new Map<string, Set<string>>();

/**
 * The official client for the API at LLM_URL; it does not retry.
 *
 * @internal
 */
export function modelClient(settings: Pick<ModelSettings, 'LLM_URL' | 'LLM_AUTH_TOKEN'>): OpenAI {
  const url = new URL(settings.LLM_URL);
  if (url.pathname === '/') url.pathname = '/v1';
  return new OpenAI({
    baseURL: url.href,
    // A local model may need no key, but the SDK insists on one.
    apiKey: settings.LLM_AUTH_TOKEN ?? 'none',
    // The engine retries: it knows the policy and survives a restart.
    maxRetries: 0,
  });
}

/**
 * Asks the model at LLM_URL once; a parameter that it refuses, and that an answer does not hang on, is left out from then on.
 * No text of the request holds a NUL or half of a surrogate pair. Throws a StageError.
 *
 * @internal
 */
export async function createResponse(
  asked: Asked,
  settings: ModelSettings,
  context: Pick<HandlerContext, 'log' | 'traceId'>,
  sent: { signal: AbortSignal; key: string },
): Promise<ModelResponse> {
  const whose = `${settings.LLM_URL} ${settings.LLM_MODEL}`;
  const refused = refusedBy.get(whose) ?? new Set();
  refusedBy.set(whose, refused);
  const headers = { ...traceHeaders(context), 'Idempotency-Key': sent.key };
  for (;;) {
    const body = storable(without(refused, asked));
    try {
      return checked(await modelClient(settings).responses.create(body, { signal: sent.signal, headers }));
    } catch (error) {
      const name = refusedParameter(error);
      if (name === null || !mayGo(name, body)) throw modelError(error);
      refused.add(name);
      context.log.warn('the model refuses a parameter, which is left out from now on', { parameter: name });
    }
  }
}

/** Servers of other protocols may answer 200 as well. */
function checked(response: ModelResponse): ModelResponse {
  if (response?.object === 'response') return response;
  throw new MisconfiguredError(
    'LLM_URL answers, but not as OpenAI’s Responses API does: set the base URL of one that offers POST /responses.',
  );
}

function without(refused: ReadonlySet<string>, asked: Asked): Asked {
  const given = Object.entries(asked).filter(([name]) => !(refused.has(name) && mayGo(name, asked)));
  return Object.fromEntries(given) as unknown as Asked;
}

/** Whether the answer is the same without this parameter. */
function mayGo(name: string, asked: Asked): boolean {
  if (name === 'metadata' || name === 'max_output_tokens') return asked[name] !== undefined;
  return (name === 'store' || name === 'background') && asked[name] === false;
}
