import OpenAI from 'openai';
import type { Response as ModelResponse } from 'openai/resources/responses/responses';
import { z } from 'zod';
import type { ModelTurn } from '../engine/engine-contract.ts';
import { excerpt, MisconfiguredError, messageOf, PermanentError, RetriableError, type StageError } from '../errors.ts';
import { jobOrigin } from '../jobs/job-service.ts';
import { parseJson } from '../parse-json.ts';
import { readSettings } from '../settings.ts';
import type { JobState, Service, ServiceContext } from '../stage/service.ts';
import type { FinishContext, HandlerContext } from '../stage/stage.ts';
import { Waiting, waiting } from '../stage/stage.ts';
import { invalidOutput, storageFault } from '../stage/validate-result.ts';
import { traceHeaders } from '../trace.ts';
import { parseForm, strictForm } from './answer-form.ts';
import { createResponse, modelClient } from './model-client.ts';
import { failedResponse, modelError } from './model-errors.ts';
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
  /** Fields that may be absent, unions and transforms are taken; docs/model-stages.md names what is refused. */
  schema: S;
  prompt: Prompt;
  input: string;
  /**
   * The answer ends after so many tokens, those of its reasoning among them; without it the model's own limit holds. The first
   * retry allows twice as many, all later ones four times.
   */
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
  const response = await askForResponse(question, context);
  return response instanceof Waiting ? response : readAnswer(response, question.schema);
}

/**
 * Asks as askModel() does, and resolves to the response itself. `metadata` comes back with it.
 *
 * @internal
 */
export async function askForResponse(
  question: Question<z.ZodObject>,
  context: HandlerContext,
  metadata: Record<string, string> = {},
): Promise<ModelResponse | Waiting> {
  const settings = readSettings(modelSettings, context.env);
  const background = settings.LLM_MODE === 'background';
  const prompt = promptVersion(question.prompt);
  const { signal, done } = ownSignal(context.signal);
  let response: ModelResponse;
  try {
    response = await createResponse(
      {
        model: settings.LLM_MODEL,
        instructions: question.prompt.instructions,
        input: question.input,
        text: { format: answerFormat(question.schema, question.name) },
        ...(question.maxOutputTokens !== undefined && {
          max_output_tokens: question.maxOutputTokens * 2 ** Math.min(context.retryCount, 2),
        }),
        metadata: {
          ...jobOrigin(context),
          submission: String(context.submission),
          prompt,
          ...metadata,
        },
        background,
        store: background,
      },
      settings,
      context,
      { signal, key: context.submissionKey },
    );
  } finally {
    done();
  }
  if (isUnfinished(response)) return waiting(model, response.id);
  context.reportUsage(usageOf(response, prompt, settings));
  return response;
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
  // A form that no model takes keeps the stage from loading, which `check` and `sync` see.
  strictForm(schema);
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

/** True while a response is still being made. */
function isUnfinished(response: ModelResponse): boolean {
  return response.status === 'queued' || response.status === 'in_progress';
}

/**
 * The form of an answer as the API takes it. Throws a MisconfiguredError where no model takes it: a schema that no finishAnswer()
 * has seen when the stage was loaded.
 *
 * @internal
 */
export function answerFormat(schema: z.ZodObject, name: string) {
  try {
    return { type: 'json_schema' as const, name: excerpt(name, 64), strict: true, schema: strictForm(schema) };
  } catch (error) {
    throw new MisconfiguredError(messageOf(error));
  }
}

/**
 * Why a response that has ended cannot be used, or null when it can.
 *
 * @internal
 */
export function responseFault(response: ModelResponse): StageError | null {
  if (response.status === 'cancelled') return new RetriableError('job_cancelled', 'The response was cancelled.');
  if (response.status === 'failed') {
    return failedResponse(response.error ?? { code: 'unknown', message: 'no reason given' });
  }
  if (response.status === 'incomplete') {
    const reason = response.incomplete_details?.reason ?? 'unknown';
    if (reason === 'content_filter') return new PermanentError('content_filtered', 'The answer was filtered.');
    return new RetriableError('incomplete_output', `The answer was cut off: ${reason}`);
  }
  return null;
}

/**
 * The answer of a response that has ended, in the form of `schema`. Throws as askModel() does.
 *
 * @internal
 */
export function readAnswer<S extends z.ZodObject>(response: ModelResponse, schema: S): z.output<S> {
  const ended = responseFault(response);
  if (ended) throw ended;
  const refusal = partsOf(response).find((part) => part.type === 'refusal');
  if (refusal) throw new PermanentError('model_refused', `The model declined to answer: ${refusal.refusal}`);
  if (textOf(response).trim() === '') throw new RetriableError('empty_answer', 'The model ended without an answer.');
  const value = answerValue(response);
  const fault = storageFault(value, 'output');
  if (fault) throw new RetriableError('invalid_output', `The model's answer cannot be kept: ${fault}`);
  const parsed = parseForm(schema, value);
  if (!parsed.success) throw invalidOutput(parsed.error, value, { retriable: true });
  return parsed.data;
}

/**
 * The answer of a response as JSON, before any schema has seen it.
 *
 * @internal
 */
export function answerValue(response: ModelResponse): unknown {
  return parseJson(textOf(response));
}

function textOf(response: ModelResponse): string {
  return partsOf(response)
    .map((part) => (part.type === 'output_text' ? part.text : ''))
    .join('');
}

function partsOf(response: ModelResponse) {
  return response.output.flatMap((item) => (item.type === 'message' ? item.content : []));
}

/** Some services leave their counts out, or send them as text. */
function countOf(tokens: unknown): number | null {
  return typeof tokens === 'number' && Number.isFinite(tokens) ? tokens : null;
}

/**
 * Returns the usage of a response, with its cost in US dollars where the settings name prices. Tokens that the response
 * does not report are null, never 0. The usage is then marked as unreported, so that its cost is not read as zero.
 *
 * @internal
 */
export function usageOf(response: ModelResponse, prompt: string, settings: ModelSettings): ModelTurn['usage'] {
  const input = countOf(response.usage?.input_tokens);
  const output = countOf(response.usage?.output_tokens);
  const { LLM_PRICE_INPUT: priceIn, LLM_PRICE_OUTPUT: priceOut } = settings;
  const priced = input !== null && output !== null && priceIn !== undefined && priceOut !== undefined;
  const cost = priced ? (input * priceIn + output * priceOut) / 1_000_000 : null;
  const unreported = input === null || output === null ? { unreported: true as const } : {};
  return { model: response.model, prompt, input_tokens: input, output_tokens: output, cost_usd: cost, ...unreported };
}
