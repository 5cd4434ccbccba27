import type { Response as ModelResponse } from 'openai/resources/responses/responses';
import { storable } from '../engine/storable.ts';
import { excerpt, MisconfiguredError, messageOf, RetriableError } from '../errors.ts';
import { parseJson } from '../parse-json.ts';
import { fromMessages, type toMessages } from './messages-form.ts';
import { type ApiFault, apiError, faultInside } from './model-errors.ts';
import type { Provider } from './model-settings.ts';
import { sentOnce } from './sent-once.ts';

/** The version of the Messages API that these requests are written for. */
const version = '2023-06-01';

/**
 * Asks Anthropic's Messages API once. Anthropic's own SDK would weigh more than all else of a function, so this is own code.
 * Throws a StageError.
 *
 * @internal
 */
export async function createMessage(
  asked: ReturnType<typeof toMessages>,
  provider: Provider,
  { signal, headers }: { signal: AbortSignal; headers: Record<string, string> },
): Promise<ModelResponse> {
  const body = await callAnthropic('/messages', provider, { signal, headers, body: asked });
  const answer = fromMessages(body);
  if (answer) return answer;
  const fault = faultInside(body);
  if (fault) throw apiError(fault, provider.prefix);
  throw new MisconfiguredError(
    `${provider.prefix}_URL answers, but not as Anthropic’s Messages API does: set the base URL of one that offers POST ` +
      `/messages, or correct ${provider.prefix}_API.`,
  );
}

/** Calls the API at a path below /v1, and returns its JSON. Throws a StageError. */
async function callAnthropic(
  path: string,
  provider: Provider,
  { signal, headers, body }: { signal: AbortSignal; headers: Record<string, string>; body: unknown },
): Promise<unknown> {
  const url = new URL(provider.url);
  if (url.pathname === '/') url.pathname = '/v1';
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(`${url.href}${path}`, {
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'application/json',
        'anthropic-version': version,
        ...(provider.token && { 'x-api-key': provider.token }),
      },
      body: sentOnce(JSON.stringify(storable(body))),
      // A fetch that follows a redirect takes the key in x-api-key along to any host.
      redirect: 'manual',
      signal,
    });
    text = await answer.text();
  } catch (error) {
    if (signal.aborted) throw error;
    const said = `The model at ${provider.prefix}_URL cannot be reached: ${messageOf(error)}`;
    throw new RetriableError('model_unreachable', 'The model cannot be reached.', undefined, said);
  }
  const json = parseJson(text);
  if (answer.ok) return json;
  throw apiError(faultOf(answer, json, text), provider.prefix);
}

function faultOf(answer: Response, json: unknown, text: string): ApiFault {
  const error = (json as { error?: Record<string, unknown> } | null)?.error;
  const details = error?.details as Record<string, unknown> | null | undefined;
  return {
    status: answer.status,
    code: typeof details?.error_code === 'string' ? details.error_code : null,
    type: typeof error?.type === 'string' ? error.type : null,
    message: typeof error?.message === 'string' ? error.message : excerpt(text, 500),
    param: null,
    headers: answer.headers,
  };
}
