import type {
  ResponseCreateParamsNonStreaming as Asked,
  Response as ModelResponse,
} from 'openai/resources/responses/responses';
import { z } from 'zod';
import { storable } from '../engine/storable.ts';
import { MisconfiguredError, RetriableError, type StageError } from '../errors.ts';
import { fromChat, toChat } from '../model/chat-form.ts';
import { fromMessages, toMessages } from '../model/messages-form.ts';
import type { ModelService } from '../model/model.ts';
import { apiError } from '../model/model-errors.ts';
import type { ModelApi, Provider } from '../model/model-settings.ts';
import type { Env } from '../settings.ts';
import type { JobState, ServiceContext } from '../stage/service.ts';
import { type HandlerContext, waiting } from '../stage/stage.ts';
import { callBatches, type LineFault, lineAnswer } from './batch-rows.ts';

export interface BatchPriceOptions {
  /** How long a row waits for a batch at most; then what is left of the batch is cancelled. Providers take up to 24 hours. */
  within?: `${number}h`;
  /** How long rows are gathered for a batch, in seconds: 600 unless given. */
  gatherSeconds?: number;
  /** How many rows fill a batch, which then begins at once: 50,000 unless given, the most that OpenAI takes. */
  maxRows?: number;
  /** `direct`: a row that got no answer within the time is asked directly, at the full price. Else its retry joins another batch. */
  fallback?: 'direct';
}

/** The most bytes of a batch's file, which the function that uploads it holds in memory. */
const MAX_BYTES = 32_000_000;
/** The questions of one claim are gathered by one call. */
const GATHER_MS = 10;
const MAX_GATHERED = 200;
/** How many answers are read by one call. */
const MAX_READ = 250;

/**
 * Returns a model that answers at its provider's batch price, half of the direct one. A stage hands it to askModel(),
 * finishAnswer() and `services` in the place of `asked`. Its rows then wait for a batch, which the pipeline model_batches carries
 * through: docs/patterns/batch-prices.md. Throws an Error where an option is out of its range.
 *
 * @example
 * ```ts
 * const cheap = atBatchPrice(modelService({ name: 'judge' }), { within: '24h', fallback: 'direct' });
 * ```
 */
export function atBatchPrice(asked: ModelService, options: BatchPriceOptions = {}): ModelService {
  const { within = '24h', gatherSeconds = 600, maxRows = 50_000, fallback } = options;
  const hours = Number(within.replace(/h$/, ''));
  check(hours > 0 && hours <= 168, `within is ${within}, but must be hours from 0 to 168, such as '24h'`);
  check(
    gatherSeconds >= 1 && gatherSeconds <= hours * 3600,
    `gatherSeconds is ${gatherSeconds}, but must be from 1 to ${within}`,
  );
  check(
    Number.isInteger(maxRows) && maxRows >= 1 && maxRows <= 50_000,
    `maxRows is ${maxRows}, but must be from 1 to 50000`,
  );
  const terms = {
    within_seconds: Math.round(hours * 3600),
    gather_seconds: Math.round(gatherSeconds),
    max_rows: maxRows,
    max_bytes: MAX_BYTES,
    fallback,
  };
  const name = `${asked.name}-batch`;
  // A direct question gets its answer in the call, not by a background response.
  const provider = (env: Env): Provider => ({ ...asked.provider(env), mode: 'inline' });
  const gatherer = new Gatherer();
  const answers = new Answers();
  return {
    ...asked,
    name,
    provider,
    async gather(question, context, origin) {
      const { prefix: settings, api, url, model, prices } = provider(context.env);
      const { pipeline, stage } = context;
      const batch = {
        pipeline,
        stage,
        service: name,
        settings,
        api,
        url,
        model,
        prices: { settings: prices, table: asked.prices },
        ...terms,
      };
      const line = {
        effect: context.idempotencyKey,
        attempt: context.attempt,
        submission: context.submission,
        trace_id: context.traceId,
        entity_id: context.entityId,
        request: JSON.stringify(requestOf(question, api, context.retryCount)),
        origin,
      };
      const given = await gatherer.add(batch, line, context);
      return 'custom_id' in given ? waiting({ name }, given.custom_id) : null;
    },
    poll: (id, context) => answers.poll(id, provider(context.env), context),
    readCallback() {
      throw new MisconfiguredError(
        'Nobody calls back about a row of a batch: the pipeline model_batches ends its wait.',
      );
    },
  };
}

function check(holds: boolean, fault: string): void {
  if (!holds) throw new Error(`atBatchPrice(): ${fault}.`);
}

/** Returns the body of a question, as a line of a batch has it. */
function requestOf(question: Asked, api: ModelApi, retryCount: number): unknown {
  // The line's custom_id says whose question it is, and batches store nothing.
  const { metadata: _, background: __, ...body } = question;
  if (api === 'messages') return storable(toMessages(question, retryCount));
  return storable(api === 'chat' ? toChat(question) : body);
}

const place = z.union([z.object({ custom_id: z.string() }), z.object({ direct: z.literal(true) })]);
type Place = z.output<typeof place>;

interface Gathered {
  batch: object;
  line: object;
  context: Pick<HandlerContext, 'env' | 'signal'>;
  resolve(place: Place): void;
  reject(error: unknown): void;
}

/** Gathers the questions that come in one go, and writes them by one call. */
class Gatherer {
  private waiting: Gathered[] = [];

  add(batch: object, line: object, context: Pick<HandlerContext, 'env' | 'signal'>): Promise<Place> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ batch, line, context, resolve, reject });
      if (this.waiting.length === 1) setTimeout(() => void this.send(), GATHER_MS);
      if (this.waiting.length >= MAX_GATHERED) void this.send();
    });
  }

  private async send(): Promise<void> {
    const some = this.waiting.splice(0, MAX_GATHERED);
    const groups = grouped(some);
    await Promise.all([...groups.values()].map((group) => this.write(group)));
  }

  private async write(some: Gathered[]): Promise<void> {
    const [{ batch, context }] = some as [Gathered];
    try {
      const args = { p_job: batch, p_items: some.map(({ line }) => line) };
      // The call serves all of these rows, so the end of one row must not end it.
      const signal = AbortSignal.timeout(10_000);
      const places = await callBatches({ env: context.env, signal }, z.array(place), 'model_batch_gather', args);
      for (const [at, { resolve }] of some.entries()) resolve(places[at] as Place);
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
  }
}

const groupOf = ({ batch }: Gathered) => JSON.stringify(batch);

function grouped(some: Gathered[]): Map<string, Gathered[]> {
  const groups = new Map<string, Gathered[]>();
  for (const one of some) groups.set(groupOf(one), [...(groups.get(groupOf(one)) ?? []), one]);
  return groups;
}

const kept = z.object({
  custom_id: z.string(),
  api: z.enum(['responses', 'chat', 'messages']),
  origin: z.record(z.string(), z.string()),
  answer: lineAnswer.nullable(),
});
type Kept = z.output<typeof kept>;

/** Reads the answers to rows that are asked after in one go by one call. */
class Answers {
  private asked: { id: string; resolve(kept: Kept | undefined): void; reject(error: unknown): void }[] = [];

  async poll(id: string, { prefix }: Provider, context: ServiceContext): Promise<JobState> {
    const found = await new Promise<Kept | undefined>((resolve, reject) => {
      this.asked.push({ id, resolve, reject });
      if (this.asked.length === 1) queueMicrotask(() => void this.read(context));
    });
    if (!found) return { state: 'lost' };
    if (!found.answer) return { state: 'queued' };
    return { state: 'finished', job: jobOf(found, prefix) };
  }

  private async read(context: ServiceContext): Promise<void> {
    const all = this.asked.splice(0);
    for (let from = 0; from < all.length; from += MAX_READ) {
      const some = all.slice(from, from + MAX_READ);
      try {
        const args = { p_items: some.map(({ id }) => id) };
        const rows = await callBatches(context, z.array(kept), 'model_batch_answers', args);
        const byId = new Map(rows.map((row) => [row.custom_id, row]));
        for (const { id, resolve } of some) resolve(byId.get(id));
      } catch (error) {
        for (const { reject } of some) reject(error);
      }
    }
  }
}

/** Returns the job of a row, as finishAnswer() reads it: a response, or the error that fails the row. */
function jobOf({ api, origin, answer }: Kept, prefix: string): ModelResponse | StageError {
  if (answer?.fault) return errorOf(answer.fault, prefix);
  const response = responseOf(api, answer && 'body' in answer ? answer.body : null);
  if (!response) return new RetriableError('invalid_output', 'The model answered in no form of its API.');
  return { ...response, metadata: { ...origin, price: 'batch' } };
}

/**
 * Returns the response in an answer's body, whichever API it is of; null for a body that is none.
 *
 * @internal
 */
export function responseOf(api: ModelApi, body: unknown): ModelResponse | null {
  if (api === 'messages') return fromMessages(body);
  const { object, choices } = (body ?? {}) as { object?: unknown; choices?: unknown };
  if (api === 'chat') return Array.isArray(choices) && choices.length > 0 ? fromChat(body as never) : null;
  return object === 'response' ? (body as ModelResponse) : null;
}

/** Returns the error for a fault of one row. It ends the row's attempt, so a wrong setting becomes a retriable failure. */
function errorOf({ status, ...said }: LineFault, prefix: string): StageError {
  if (status === null) return new RetriableError(said.code ?? 'no_answer', said.message);
  const error = apiError({ ...said, status, param: null, headers: new Headers() }, prefix);
  if (!(error instanceof MisconfiguredError)) return error;
  return new RetriableError(error.code, error.message, undefined, error.detail);
}
