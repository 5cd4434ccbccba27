import { createHash } from 'node:crypto';
import type { Response as ModelResponse } from 'openai/resources/responses/responses';
import type { z } from 'zod';
import { messageOf } from '../errors.ts';
import { readSettings } from '../settings.ts';
import type { FinishContext, HandlerContext } from '../stage/stage.ts';
import { Waiting } from '../stage/stage.ts';
import { parseForm, strictForm } from './answer-form.ts';
import { answerValue, askForResponse, finishAnswer, type Question, readAnswer } from './model.ts';
import { type ModelSettings, modelSettings } from './model-settings.ts';
import { promptVersion } from './prompt.ts';

/** The name under which a background response carries its question's key. */
const keyName = 'answer_key';

/** A table of former answers by the keys of their questions. */
export interface FormerAnswers {
  /**
   * Whose answers these are: the tenant's id, where the pipeline has tenants. It is part of each key, so no tenant gets
   * another's answer. Null where all rows belong to one owner.
   */
  owner: string | null;
  /** The answer that was kept under a key; null without one. */
  find(key: string): Promise<unknown>;
  keep(key: string, answer: unknown): Promise<void>;
}

/**
 * Asks as askModel() does, but a question that was answered before gets its former answer. A former answer costs no
 * tokens, and its usage says `cached`. Two questions are the same if model, instructions, schema and input are. A retry
 * asks the model. An error of the table does not fail the attempt: it is logged, and the model is asked.
 *
 * @example
 * ```ts
 * const answers: FormerAnswers = { owner: null, find: async () => null, keep: async () => {} };
 *
 * const readSummary = (context: HandlerContext) =>
 *   askOnce(
 *     {
 *       name: 'order_summary',
 *       schema: answerSchema,
 *       prompt: { label: 'summary-1', instructions: `Say in a sentence what is ordered. ${UNTRUSTED_NOTE}` },
 *       input: quote('order', entity.body, 4_000),
 *     },
 *     context,
 *     answers,
 *   );
 * ```
 */
export async function askOnce<S extends z.ZodObject>(
  question: Question<S>,
  context: HandlerContext,
  answers: FormerAnswers,
): Promise<z.output<S> | Waiting> {
  const settings = readSettings(modelSettings, context.env);
  const key = questionKey(question, settings, answers.owner);
  const warn = (error: unknown) => context.log.warn('the table of former answers fails', { error: messageOf(error) });
  if (context.retryCount === 0) {
    const found = parseForm(question.schema, await answers.find(key).catch(warn));
    if (found.success) {
      const prompt = promptVersion(question.prompt);
      const free = { input_tokens: 0, output_tokens: 0, cost_usd: 0, cached: true };
      context.reportUsage({ model: settings.LLM_MODEL, prompt, ...free });
      return found.data;
    }
  }
  const response = await askForResponse(question, context, { [keyName]: key });
  if (response instanceof Waiting) return response;
  const answer = readAnswer(response, question.schema);
  await answers.keep(key, answerValue(response)).catch(warn);
  return answer;
}

/**
 * The finish function of a stage that asks by askOnce(): as finishAnswer(), and keeps the answer where the schema takes it.
 *
 * @example
 * ```ts
 * const answers: FormerAnswers = { owner: null, find: async () => null, keep: async () => {} };
 * const finish = finishOnce(answerSchema, () => answers);
 *
 * const { summary } = await finish(job, finishContext);
 * ```
 */
export function finishOnce<S extends z.ZodObject>(
  schema: S,
  answersOf: (context: FinishContext) => FormerAnswers,
): (job: unknown, context: FinishContext) => Promise<z.output<S>> {
  const read = finishAnswer(schema);
  return async (job, context) => {
    const answer = read(job, context);
    const response = job as ModelResponse;
    const key = response.metadata?.[keyName];
    const warn = (error: unknown) => console.warn(`The table of former answers fails: ${messageOf(error)}`);
    if (key) await answersOf(context).keep(key, answerValue(response)).catch(warn);
    return answer;
  };
}

function questionKey(
  { name, schema, prompt, input }: Question<z.ZodObject>,
  { LLM_URL, LLM_MODEL }: ModelSettings,
  owner: string | null,
): string {
  const parts = [owner, LLM_URL, LLM_MODEL, prompt.instructions, name, strictForm(schema), input];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}
