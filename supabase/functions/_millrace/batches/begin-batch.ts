import { z } from 'zod';
import { RetriableError, StageError, UnavailableError } from '../errors.ts';
import { modelSettingsOf, type Provider, readProvider } from '../model/model-settings.ts';
import type { Env } from '../settings.ts';
import type { JobState, Service, ServiceContext } from '../stage/service.ts';
import { type FinishContext, type HandlerContext, type Waiting, waiting } from '../stage/stage.ts';
import { stepsOf } from '../stage/steps.ts';
import { anthropicBatches } from './anthropic-batches.ts';
import type { BatchApi, BatchCall, BatchState, FileLine } from './batch-api.ts';
import { type BatchRow, batchRow, callBatches, lineFault } from './batch-rows.ts';
import { openaiBatches } from './openai-batches.ts';

/** How many lines of a file are read by one call. */
const PAGE = 2_000;
/** How long a provider's list may lack a batch that a call has begun. */
const LIST_LAG_MS = 30 * 60_000;
const ENDED = ['completed', 'expired', 'cancelled'] as const;

/** The end of a batch: how it ended, and where its results are. */
export const begun = z.object({
  status: z.enum([...ENDED, 'rejected', 'empty', 'never_begun']),
  files: z.array(z.string()),
  /** How many results there are, as the provider counts them. */
  results: z.number(),
  fault: lineFault.nullable(),
});
export type Begun = z.output<typeof begun>;

/** Returns the batch's provider, by the settings of this function. */
export function providerOf({ settings, api, url }: BatchRow, env: Env): Provider {
  const provider = readProvider(settings, modelSettingsOf(settings), env);
  if (provider.api === api && provider.url === url) return provider;
  throw new RetriableError(
    'misconfigured',
    `The batch was gathered for another ${settings}_URL or ${settings}_API than this function has: set them as they were, until ` +
      'the batch has ended.',
  );
}

export const apiOf = ({ api }: BatchRow): BatchApi => (api === 'messages' ? anthropicBatches : openaiBatches);

const timed = z.object({ tried_at: z.string() });
const closedBatch = batchRow.extend({ ...timed.shape, was_begun: z.boolean(), is_fresh: z.boolean() });
type ClosedBatch = z.output<typeof closedBatch>;

/**
 * A step towards the batch, once its file is uploaded, and again before each call that begins it: `tried_at` is the time of that
 * call, and null once the provider has refused it.
 */
const step = z.object({ round: z.number(), file: z.string().nullable(), tried_at: z.string().nullish() });

/** Closes a batch, uploads its file and begins it, or finds the batch that an earlier call has begun. */
export async function beginBatch(id: number, context: HandlerContext): Promise<Begun | Waiting> {
  const { env, signal } = context;
  const batch = await callBatches(context, closedBatch, 'model_batch_close', { p_job: { id } });
  if (batch.job_id) return waiting(batchJobs, batch.job_id);
  if (batch.sent === 0) return nothing('empty');
  const call = { provider: providerOf(batch, env), batch, signal };
  const api = apiOf(batch);
  const { done, record } = await stepsOf('uploaded', step, context);
  const last = done.findLast(({ round }) => round === batch.round);
  const areKnown = (ids: string[]) => callBatches(context, z.array(z.string()), 'model_batch_known', { p_items: ids });
  const found = batch.was_begun ? await api.find(call, { file: last?.file ?? null, areKnown }) : null;
  if (found) return waitFor(found.id, found.unsure ? 'unsure' : 'begun', batch, context);
  const tried = last ? (last.tried_at ?? null) : batch.begun_at;
  const now = await timeOf(batch, tried, context);
  if (batch.is_over) return nothing('never_begun');
  const lines = await readFile(id, context);
  const file = last?.file ?? (await api.upload(lines, call));
  if (file !== null && !last) await record({ round: batch.round, file });
  await record({ round: batch.round, file, tried_at: now });
  const jobId = await api.begin(file, lines, call).catch(async (error: unknown) => {
    if (isRefusal(error)) await record({ round: batch.round, file, tried_at: null });
    throw error;
  });
  const wait = await waitFor(jobId, 'begun', batch, context);
  // Of two calls that got the same id, the later one sees both.
  if ((await areKnown([jobId])).length < 2) return wait;
  await callBatches(context, batchRow, 'model_batch_note', { p_job: { id, forget: true, status: 'begun' } });
  throw new RetriableError('invalid_output', 'The provider answered with the id of another batch.');
}

/** Returns the database's time. Throws a RetriableError while an earlier call may have begun a batch that the list lacks. */
async function timeOf(batch: ClosedBatch, tried: string | null, context: HandlerContext): Promise<string> {
  if (!batch.was_begun) return batch.tried_at;
  const { tried_at: now } = await callBatches(context, timed, 'model_batch_note', { p_job: { id: batch.id } });
  const isRecent = tried !== null && Date.parse(now) - Date.parse(tried) < LIST_LAG_MS;
  if (!batch.is_fresh && !isRecent) return now;
  // A call that was cut off may reach the provider later, and its list may lag.
  throw new RetriableError('batch_unknown', 'An earlier call may still be beginning the batch.', 120_000);
}

/** Returns whether an error proves that no batch was begun. A call that met an outage may have begun one. */
const isRefusal = (error: unknown) =>
  error instanceof StageError &&
  (error.permanent || ['misconfigured', 'rate_limited'].includes(error.code)) &&
  error.code !== 'idempotency_key_reused';

const nothing = (status: 'empty' | 'never_begun'): Begun => ({ status, files: [], results: 0, fault: null });

async function waitFor(jobId: string, status: string, { id }: BatchRow, context: HandlerContext): Promise<Waiting> {
  await callBatches(context, batchRow, 'model_batch_note', { p_job: { id, set_job_id: jobId, status } });
  return waiting(batchJobs, jobId);
}

const fileLines = z.array(z.object({ id: z.number(), request: z.string() }));

async function readFile(id: number, context: HandlerContext): Promise<FileLine[]> {
  const lines: FileLine[] = [];
  for (;;) {
    const p_job = { id, after: lines.at(-1)?.id ?? 0, limit: PAGE };
    const some = await callBatches(context, fileLines, 'model_batch_file', { p_job });
    lines.push(...some);
    if (some.length < PAGE) return lines;
  }
}

/** A provider's batch, as the stage `begin` waits for it. */
export const batchJobs: Service = {
  name: 'model-batches',
  poll: pollBatch,
  readCallback() {
    throw new UnavailableError('no_callback', 'The provider is asked after its batches.');
  },
};

interface EndedBatch {
  batch: BatchRow;
  state: BatchState;
}

const batchOfJob = batchRow.nullable();

/** Asks after a batch; one whose rows should wait no longer is cancelled, and ends with the results that it has. */
async function pollBatch(id: string, context: ServiceContext): Promise<JobState> {
  const batch = await callBatches(context, batchOfJob, 'model_batch_note', { p_job: { job_id: id } });
  if (!batch) return { state: 'lost' };
  const call = { provider: providerOf(batch, context.env), signal: context.signal };
  const api = apiOf(batch);
  const state = await api.stateOf(id, call);
  if (!state) return { state: 'lost' };
  if (batch.status === 'begun') await cancelTwins(id, { ...call, batch }, context);
  if (state.state === 'running' && batch.is_over && !isUnsure(batch)) await api.cancel(id, call);
  if (state.state === 'running' || state.state === 'cancelling') return { state: 'running' };
  if (state.lacksFiles && !batch.is_over) return { state: 'running' };
  return { state: 'finished', job: { batch, state } satisfies EndedBatch };
}

/** Cancels the other batches that the call which began this one may have begun. A list that cannot be read holds nothing up. */
async function cancelTwins(id: string, call: BatchCall, context: ServiceContext): Promise<void> {
  const api = apiOf(call.batch);
  try {
    for (const twin of await api.twinsOf(id, call)) await api.cancel(twin, call);
  } catch (error) {
    if (error instanceof StageError) return;
    throw error;
  }
  await callBatches(context, batchRow, 'model_batch_note', { p_job: { id: call.batch.id, status: 'running' } });
}

const isUnsure = ({ status }: BatchRow) => status === 'unsure';

/** Reads how a batch has ended. A file that the provider refused for some of its lines begins again without them. */
export async function finishBatch(job: unknown, context: FinishContext): Promise<Begun> {
  const { batch, state } = job as EndedBatch;
  const { id, job_id } = batch;
  const [file] = state.files;
  const call = { provider: providerOf(batch, context.env), batch, signal: context.signal };
  if (isUnsure(batch) && !(file && (await apiOf(batch).owns(file, call)))) {
    await callBatches(context, batchRow, 'model_batch_note', { p_job: { id, forget: true, status: 'begun' } });
    throw new RetriableError('other_batch', 'The batch that was waited for is another’s: ours is looked for again.');
  }
  if (state.state !== 'rejected')
    return { status: endOf(state), files: state.files, results: state.results, fault: null };
  const [first] = state.faults;
  if (first?.fault.code === 'token_limit_exceeded') {
    await reject(batch, [], context);
    throw new RetriableError(
      'rate_limited',
      'The account has no room for another batch now.',
      600_000,
      first.fault.message,
    );
  }
  const items = state.faults.flatMap(({ line, fault }) => (line === null ? [] : [{ line, answer: { fault } }]));
  if (items.length > 0) {
    await reject({ ...batch, job_id }, items, context);
    throw new RetriableError(
      'file_rejected',
      `The provider refused the file for ${items.length} of its lines: it begins without them.`,
    );
  }
  const { code, message } = first?.fault ?? { code: null, message: 'no reason given' };
  // Without a status no row fails for good, since no row is to blame.
  const said = { status: null, code: code ?? 'batch_rejected', type: null };
  return {
    status: 'rejected',
    files: [],
    results: 0,
    fault: { ...said, message: `The provider refused the batch: ${message}` },
  };
}

const endOf = ({ state }: BatchState) => ENDED.find((one) => one === state) ?? 'completed';

async function reject({ id, job_id }: BatchRow, items: object[], context: FinishContext): Promise<void> {
  await callBatches(context, z.unknown(), 'model_batch_reject', { p_job: { id, job_id }, p_items: items });
}
