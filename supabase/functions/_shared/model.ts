import OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import type { Response as ModelResponse } from 'openai/resources/responses/responses';
import type { z } from 'zod';
import type { ModelTurn } from './engine-contract.ts';
import { MisconfiguredError, PermanentError, RetriableError, type StageError } from './errors.ts';
import { jobOrigin } from './job-client.ts';
import { modelError } from './model-errors.ts';
import { ownSignal } from './own-signal.ts';
import { parseJson } from './parse-json.ts';
import { type Prompt, promptVersion } from './prompt.ts';
import { type Env, readSettings, type Settings } from './settings.ts';
import type { FinishContext, HandlerContext, Waiting } from './stage.ts';
import { waiting } from './stage.ts';
import { invalidOutput } from './validate-result.ts';

/** The name under which waiting attempts know this service. */
export const MODEL_SERVICE = 'llm';

/** A question to the model whose answer has the form of `schema`. */
export interface Question<S extends z.ZodObject> {
  /** Names the form of the answer to the model: letters, digits and _. */
  name: string;
  schema: S;
  prompt: Prompt;
  input: string;
}

/**
 * Asks the model. With LLM_MODE `inline` returns the parsed answer; with `background` returns at once, waiting for the
 * response to be finished by webhook or polling. Reports usage; throws a StageError that says what to do.
 */
export async function askModel<S extends z.ZodObject>(
  question: Question<S>,
  context: HandlerContext,
): Promise<z.output<S> | Waiting> {
  const settings = readSettings('model', context.env);
  const background = settings.LLM_MODE === 'background';
  const prompt = promptVersion(question.prompt);
  const { signal, done } = ownSignal(context.signal);
  let response: ModelResponse;
  try {
    response = await modelClient(settings).responses.create(
      {
        model: settings.LLM_MODEL,
        instructions: question.prompt.instructions,
        input: question.input,
        text: { format: zodTextFormat(question.schema, question.name) },
        metadata: {
          ...jobOrigin(context),
          submission: String(context.submission),
          prompt,
        },
        background,
        store: background,
      },
      { signal, headers: { 'Idempotency-Key': context.idempotencyKey } },
    );
  } catch (error) {
    throw modelError(error);
  } finally {
    done();
  }
  if (!isResponse(response)) {
    throw new MisconfiguredError(
      'LLM_URL answers, but not as OpenAI’s Responses API does: set the base URL of one that offers POST /responses.',
    );
  }
  if (isUnfinished(response)) return waiting({ service: MODEL_SERVICE, jobId: response.id });
  context.reportUsage(usageOf(response, prompt, settings));
  return readAnswer(response, question.schema);
}

/** How a background response becomes a stage's output. */
export function finishAnswer<S extends z.ZodObject>(
  schema: S,
): (job: unknown, context: Pick<FinishContext, 'env' | 'reportUsage'>) => z.output<S> {
  return (job, { env, reportUsage }) => {
    const response = job as ModelResponse;
    reportUsage(usageOf(response, response.metadata?.prompt ?? 'unknown', readSettings('model', env)));
    return readAnswer(response, schema);
  };
}

/** Fetches a background response; null when the service does not know it. Throws as askModel does. */
export async function getModelResponse(id: string, env: Env, signal: AbortSignal): Promise<ModelResponse | null> {
  try {
    return await modelClient(readSettings('model', env)).responses.retrieve(id, {}, { signal });
  } catch (error) {
    if (error instanceof OpenAI.NotFoundError) return null;
    throw modelError(error);
  }
}

/** Servers of other protocols may answer 200 as well. */
function isResponse(response: ModelResponse): boolean {
  return response?.object === 'response';
}

/** True while a response is still being made. */
export function isUnfinished(response: ModelResponse): boolean {
  return response.status === 'queued' || response.status === 'in_progress';
}

/** The official client for the API at LLM_URL; it does not retry. */
export function modelClient(settings: Settings['model']): OpenAI {
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

/** Why a response that has ended cannot be used, or null when it can. */
export function responseFault(response: ModelResponse): StageError | null {
  if (response.status === 'cancelled') return new RetriableError('job_cancelled', 'The response was cancelled.');
  if (response.status === 'failed') {
    const { code, message } = response.error ?? { code: 'unknown', message: 'no reason given' };
    const said = `The model failed (${code}): ${message}`;
    if (code === 'rate_limit_exceeded') return new RetriableError('rate_limited', said);
    if (code === 'server_error' || code === 'unknown') return new RetriableError('server_error', said);
    return new PermanentError('model_rejected_request', said);
  }
  if (response.status === 'incomplete') {
    const reason = response.incomplete_details?.reason ?? 'unknown';
    if (reason === 'content_filter') return new PermanentError('content_filtered', 'The answer was filtered.');
    return new RetriableError('incomplete_output', `The answer was cut off: ${reason}`);
  }
  return null;
}

function readAnswer<S extends z.ZodObject>(response: ModelResponse, schema: S): z.output<S> {
  const fault = responseFault(response);
  if (fault) throw fault;
  const parts = response.output.flatMap((item) => (item.type === 'message' ? item.content : []));
  const refusal = parts.find((part) => part.type === 'refusal');
  if (refusal) throw new PermanentError('model_refused', `The model declined to answer: ${refusal.refusal}`);
  const text = parts.map((part) => (part.type === 'output_text' ? part.text : '')).join('');
  const parsed = schema.safeParse(parseJson(text));
  if (!parsed.success) throw invalidOutput(parsed.error, parseJson(text), { retriable: true });
  return parsed.data;
}

/** What a response has used up, with its cost where the settings name prices. */
export function usageOf(response: ModelResponse, prompt: string, settings: Settings['model']): ModelTurn['usage'] {
  const input = response.usage?.input_tokens ?? null;
  const output = response.usage?.output_tokens ?? null;
  const { LLM_PRICE_INPUT: priceIn, LLM_PRICE_OUTPUT: priceOut } = settings;
  const priced = input !== null && output !== null && priceIn !== undefined && priceOut !== undefined;
  const cost = priced ? (input * priceIn + output * priceOut) / 1_000_000 : null;
  return { model: response.model, prompt, input_tokens: input, output_tokens: output, cost_usd: cost };
}
