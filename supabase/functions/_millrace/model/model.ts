import OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import type { Response as ModelResponse } from 'openai/resources/responses/responses';
import { z } from 'zod';
import type { ModelTurn } from '../engine/engine-contract.ts';
import { MisconfiguredError, PermanentError, RetriableError, type StageError } from '../errors.ts';
import { jobOrigin } from '../jobs/job-service.ts';
import type { JobState, Service, ServiceContext } from '../jobs/service.ts';
import { parseJson } from '../parse-json.ts';
import { readSettings } from '../settings.ts';
import type { FinishContext, HandlerContext, Waiting } from '../stage/stage.ts';
import { waiting } from '../stage/stage.ts';
import { invalidOutput } from '../stage/validate-result.ts';
import { traceHeaders } from '../trace.ts';
import { modelError } from './model-errors.ts';
import { type ModelSettings, modelSettings } from './model-settings.ts';
import { ownSignal } from './own-signal.ts';
import { type Prompt, promptVersion } from './prompt.ts';

const callbackSchema = z.object({
  type: z.enum(['response.completed', 'response.failed', 'response.cancelled', 'response.incomplete']),
  data: z.object({ id: z.string().min(1) }),
});

/** The model as a stage waits for it with LLM_MODE `background`. Its callback names the response, which is then fetched. */
export const model: Service = {
  name: 'llm',
  settings: modelSettings,
  poll: pollResponse,
  readCallback(body) {
    const parsed = callbackSchema.safeParse(body);
    if (parsed.success) return { jobId: parsed.data.data.id };
    const issue = parsed.error.issues[0];
    throw new PermanentError('bad_callback', `${issue?.path.join('.') || 'The body'}: ${issue?.message}`);
  },
};

/** A question to the model whose answer has the form of `schema`. */
export interface Question<S extends z.ZodObject> {
  /** Names the form of the answer to the model: letters, digits and _. */
  name: string;
  schema: S;
  prompt: Prompt;
  input: string;
  /** The answer ends after so many tokens, those of its reasoning among them; without it the model's own limit holds. */
  maxOutputTokens?: number;
}

/**
 * Asks the model at LLM_URL. With LLM_MODE `inline` it resolves to the parsed answer; with `background` at once to a Waiting, and
 * the response is finished by webhook or polling, for which the stage has `finish: finishAnswer(schema)`. Reports what the
 * answer used up. Throws a StageError: retriable when the model cannot be reached, is overloaded or answers in another form,
 * permanent when it declines or rejects the request.
 *
 * @example
 * ```ts
 * export const readSummary = (context: HandlerContext) =>
 *   askModel(
 *     {
 *       name: 'order_summary',
 *       schema: answerSchema,
 *       prompt: { label: 'summary-1', instructions: `Say in a sentence what is ordered. ${UNTRUSTED_NOTE}` },
 *       input: quote('order', entity.body, 4_000),
 *     },
 *     context,
 *   );
 * ```
 */
export async function askModel<S extends z.ZodObject>(
  question: Question<S>,
  context: HandlerContext,
): Promise<z.output<S> | Waiting> {
  const settings = readSettings(modelSettings, context.env);
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
        ...(question.maxOutputTokens !== undefined && { max_output_tokens: question.maxOutputTokens }),
        metadata: {
          ...jobOrigin(context),
          submission: String(context.submission),
          prompt,
        },
        background,
        store: background,
      },
      { signal, headers: { ...traceHeaders(context), 'Idempotency-Key': context.submissionKey } },
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
  if (isUnfinished(response)) return waiting(model, response.id);
  context.reportUsage(usageOf(response, prompt, settings));
  return readAnswer(response, question.schema);
}

/**
 * The finish function of a stage that asks a model: turns a background response into the stage's output, of the form of
 * `schema`, and reports what it used up. Throws as askModel() does.
 *
 * @example
 * ```ts
 * const finish = finishAnswer(answerSchema);
 *
 * const { summary } = finish(job, finishContext);
 * ```
 */
export function finishAnswer<S extends z.ZodObject>(
  schema: S,
): (job: unknown, context: Pick<FinishContext, 'env' | 'reportUsage'>) => z.output<S> {
  return (job, { env, reportUsage }) => {
    const response = job as ModelResponse;
    reportUsage(usageOf(response, response.metadata?.prompt ?? 'unknown', readSettings(modelSettings, env)));
    return readAnswer(response, schema);
  };
}

/** Asks after a background response. Throws as askModel does. */
async function pollResponse(id: string, { env, signal, ...traced }: ServiceContext): Promise<JobState> {
  let response: ModelResponse;
  try {
    response = await modelClient(readSettings(modelSettings, env)).responses.retrieve(
      id,
      {},
      { signal, headers: traceHeaders(traced) },
    );
  } catch (error) {
    if (error instanceof OpenAI.NotFoundError) return { state: 'lost' };
    throw modelError(error);
  }
  if (response.status === 'queued') return { state: 'queued' };
  return isUnfinished(response) ? { state: 'running' } : { state: 'finished', job: response };
}

/** Servers of other protocols may answer 200 as well. */
function isResponse(response: ModelResponse): boolean {
  return response?.object === 'response';
}

/** True while a response is still being made. */
function isUnfinished(response: ModelResponse): boolean {
  return response.status === 'queued' || response.status === 'in_progress';
}

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
 * Why a response that has ended cannot be used, or null when it can.
 *
 * @internal
 */
export function responseFault(response: ModelResponse): StageError | null {
  if (response.status === 'cancelled') return new RetriableError('job_cancelled', 'The response was cancelled.');
  if (response.status === 'failed') {
    const { code, message } = response.error ?? { code: 'unknown', message: 'no reason given' };
    const said = `The model failed (${code}).`;
    if (code === 'rate_limit_exceeded') return new RetriableError('rate_limited', said, undefined, message);
    if (code === 'server_error' || code === 'unknown') {
      return new RetriableError('server_error', said, undefined, message);
    }
    return new PermanentError('model_rejected_request', said, undefined, message);
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

/**
 * What a response has used up, with its cost where the settings name prices.
 *
 * @internal
 */
export function usageOf(response: ModelResponse, prompt: string, settings: ModelSettings): ModelTurn['usage'] {
  const input = response.usage?.input_tokens ?? null;
  const output = response.usage?.output_tokens ?? null;
  const { LLM_PRICE_INPUT: priceIn, LLM_PRICE_OUTPUT: priceOut } = settings;
  const priced = input !== null && output !== null && priceIn !== undefined && priceOut !== undefined;
  const cost = priced ? (input * priceIn + output * priceOut) / 1_000_000 : null;
  return { model: response.model, prompt, input_tokens: input, output_tokens: output, cost_usd: cost };
}
