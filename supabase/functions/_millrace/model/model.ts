import OpenAI from 'openai';
import type {
  ResponseCreateParamsNonStreaming as Asked,
  Response as ModelResponse,
} from 'openai/resources/responses/responses';
import { z } from 'zod';
import { excerpt, MisconfiguredError, messageOf, PermanentError, StageError } from '../errors.ts';
import { jobOrigin } from '../jobs/job-service.ts';
import type { Env, SettingsGroup } from '../settings.ts';
import type { CalledBack, JobState, Service, ServiceContext } from '../stage/service.ts';
import type { FinishContext, HandlerContext } from '../stage/stage.ts';
import { type Waiting, waiting } from '../stage/stage.ts';
import { traceHeaders } from '../trace.ts';
import { strictForm } from './answer-form.ts';
import { addUsage } from './attempt-usage.ts';
import { type AnswerCache, checkCache, findAnswer, keepAnswer, questionKey } from './former-answers.ts';
import { createResponse, modelClient } from './model-client.ts';
import { bodyOf, modelError } from './model-errors.ts';
import type { PriceTable } from './model-prices.ts';
import { modelSettings, modelSettingsOf, type Provider, readProvider } from './model-settings.ts';
import { ownSignal } from './own-signal.ts';
import { type Prompt, promptVersion } from './prompt.ts';
import { answerValue, isUnfinished, readAnswer, usageOf } from './read-answer.ts';

const callbackSchema = z.object({
  type: z.enum(['response.completed', 'response.failed', 'response.cancelled', 'response.incomplete']),
  data: z.object({ id: z.string().min(1) }),
});

/** A model under settings of its own, and as a stage waits for it in the background. */
export interface ModelService extends Service {
  settings: SettingsGroup;
  /** Prices of the project, which count before the published ones. */
  prices?: PriceTable | undefined;
  /** Reads where the model is. Throws a MisconfiguredError. */
  provider(env: Env): Provider;
  /** At a batch price: puts the question into a batch. Resolves to null where the row is to be asked directly. */
  gather?(question: Asked, context: HandlerContext, origin: Record<string, string>): Promise<Waiting | null>;
}

/**
 * Describes a model beside that of LLM_…: its address, key and name are the settings NAME_URL, NAME_AUTH_TOKEN and NAME_MODEL, and
 * so are all others. A stage hands it to askModel() and finishAnswer(), or an agent to defineAgent().
 *
 * `prices`: what its models cost, where the table of published prices has nothing or something else. Settings count before both.
 *
 * @example
 * ```ts
 * const judge = modelService({
 *   name: 'judge',
 *   prices: { date: '2026-11-29', models: { 'our-own-model': { input: 0.2, output: 0.8 } } },
 * });
 * ```
 */
export function modelService({ name, prices }: { name: string; prices?: PriceTable }): ModelService {
  const prefix = name.toUpperCase().replaceAll('-', '_');
  const settings: SettingsGroup = prefix === 'LLM' ? modelSettings : modelSettingsOf(prefix);
  const provider = (env: Env) => readProvider(prefix, settings, env);
  return {
    name,
    settings,
    prices,
    provider,
    poll: (id, context) => pollResponse(provider(context.env), id, context),
    readCallback: readModelCallback,
  };
}

/** The model of the settings LLM_…, as a stage waits for it with LLM_MODE `background`. */
export const model = modelService({ name: 'llm' });

/** Reads a callback, which names the response that is then fetched. */
function readModelCallback(body: unknown): CalledBack {
  const parsed = callbackSchema.safeParse(body);
  if (parsed.success) return { jobId: parsed.data.data.id };
  const issue = parsed.error.issues[0];
  throw new PermanentError('bad_callback', `${issue?.path.join('.') || 'The body'}: ${issue?.message}`);
}

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
  /** The model that is asked; without it, that of the settings LLM_…. */
  model?: ModelService;
  /**
   * Keeps the answer for so many days: the same question of the same tenant to the same model then gets it again, which costs
   * nothing. A retry asks the model. Needs the table public.model_answers (docs/model-stages.md).
   */
  cache?: AnswerCache;
}

/**
 * Asks a model. With LLM_MODE `inline` it resolves to the parsed answer; with `background` at once to a Waiting, and
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
  const asked = question.model ?? model;
  const provider = asked.provider(context.env);
  const prompt = promptVersion(question.prompt);
  if (question.cache) checkCache(question.cache);
  const cache = question.cache && { days: question.cache.days, key: questionKey(question, provider, question.cache) };
  if (cache) {
    // A retry looks too, since a missing table must show before the model is paid.
    const found = await findAnswer(cache.key, question.schema, context);
    if (found && context.retryCount === 0) {
      const free = { input_tokens: 0, output_tokens: 0, cost_usd: 0, cached: true };
      addUsage(context, { model: provider.model, prompt, ...free });
      return found;
    }
  }
  const origin: Record<string, string> = cache ? { answer_key: cache.key, answer_days: String(cache.days) } : {};
  const waits = await asked.gather?.(requestOf(question, provider, context), context, { prompt, ...origin });
  if (waits) return waits;
  const response = await askForResponse(question, provider, context, { prompt, ...origin });
  if (isUnfinished(response)) return waiting(asked, response.id);
  addUsage(context, usageOf(response, prompt, provider, asked.prices));
  const answer = readAnswer(response, question.schema, provider.prefix);
  if (cache) await keepAnswer(cache.key, cache.days, answerValue(response), context);
  return answer;
}

async function askForResponse(
  question: Question<z.ZodObject>,
  provider: Provider,
  context: HandlerContext,
  metadata: Record<string, string>,
): Promise<ModelResponse> {
  const background = provider.mode === 'background';
  if (background && provider.api !== 'responses') {
    const { prefix } = provider;
    throw new MisconfiguredError(
      `${prefix}_MODE is background, but the API ${provider.api} answers in the call alone: set ${prefix}_MODE to inline.`,
    );
  }
  const { signal, done } = ownSignal(context.signal);
  try {
    return await createResponse(
      {
        ...requestOf(question, provider, context),
        metadata: { ...jobOrigin(context), submission: String(context.submission), ...metadata },
        background,
        store: background,
      },
      provider,
      context,
      { signal, key: context.submissionKey },
    );
  } finally {
    done();
  }
}

function requestOf(question: Question<z.ZodObject>, provider: Provider, { retryCount }: HandlerContext): Asked {
  return {
    model: provider.model,
    instructions: question.prompt.instructions,
    input: question.input,
    text: { format: answerFormat(question.schema, question.name) },
    ...(question.maxOutputTokens !== undefined && {
      max_output_tokens: question.maxOutputTokens * 2 ** Math.min(retryCount, 2),
    }),
  };
}

/**
 * The finish function of a stage that asks a model: turns a background response into the stage's output, of the form of
 * `schema`, and reports what it used up. Throws as askModel() does.
 *
 * `asked`: the model, where it is not that of the settings LLM_….
 *
 * @example
 * ```ts
 * const finish = finishAnswer(answerSchema);
 *
 * const { summary } = await finish(job, finishContext);
 * ```
 */
export function finishAnswer<S extends z.ZodObject>(
  schema: S,
  asked: ModelService = model,
): (job: unknown, context: AnswerContext) => Promise<z.output<S>> {
  // A form that no model takes keeps the stage from loading, which `check` and `sync` see.
  strictForm(schema);
  return async (job, context) => {
    // A batch may have no answer for a row, but the reason.
    if (job instanceof StageError) throw job;
    const response = job as ModelResponse;
    const { prompt = 'unknown', answer_key: key, answer_days: days } = response.metadata ?? {};
    const provider = asked.provider(context.env);
    addUsage(context, usageOf(response, prompt, provider, asked.prices));
    const answer = readAnswer(response, schema, provider.prefix);
    if (key) await keepAnswer(key, Number(days), answerValue(response), context);
    return answer;
  };
}

/** The part of a finish function's context by which an answer is finished. */
type AnswerContext = Pick<FinishContext, 'env' | 'reportUsage' | 'signal'>;

/** Asks after a background response. Throws as askModel does. */
async function pollResponse(
  provider: Provider,
  id: string,
  { signal, ...traced }: Omit<ServiceContext, 'env'>,
): Promise<JobState> {
  let response: ModelResponse;
  try {
    const asking = modelClient(provider).responses.retrieve(id, {}, { signal, headers: traceHeaders(traced) });
    response = await bodyOf(asking, provider.prefix);
  } catch (error) {
    if (error instanceof OpenAI.NotFoundError) return { state: 'lost' };
    throw modelError(error, provider.prefix);
  }
  if (response.status === 'queued') return { state: 'queued' };
  return isUnfinished(response) ? { state: 'running' } : { state: 'finished', job: response };
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
