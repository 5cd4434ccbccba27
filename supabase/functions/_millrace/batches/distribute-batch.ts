import { z } from 'zod';
import { createEngine, dataApiRpc } from '../engine/engine-client.ts';
import { readPlatform } from '../engine/platform.ts';
import { MisconfiguredError, RetriableError } from '../errors.ts';
import { callStage } from '../jobs/call-stage.ts';
import { usageOf } from '../model/read-answer.ts';
import { type HandedBack, type HandlerContext, handBack } from '../stage/stage.ts';
import { type Steps, stepsOf } from '../stage/steps.ts';
import { customIdOf } from './batch-api.ts';
import { responseOf } from './batch-price.ts';
import { type BatchRow, batchRow, callBatches, type LineAnswer } from './batch-rows.ts';
import { apiOf, type Begun, providerOf } from './begin-batch.ts';

/** How many answers are written, and rows handed over, by one call. */
const TAKE = 250;
/** How many characters of answers are written by one call, or little more. */
const TAKE_SIZE = 4_000_000;
const HAND = 250;
/** How many answers are taken, and how many rows handed over, by one invocation, whose CPU is short. */
const MAX_TAKEN = 10_000;
const MAX_HANDED = 5_000;
/** How often, over five hours, files that lack results which the provider counts are read anew. */
const MAX_PASSES = 16;
const HAND_TIMEOUT_MS = 20_000;

export const distributed = z.object({
  status: z.string(),
  lines: z.number(),
  unanswered: z.number(),
  cost_usd: z.number().nullable(),
});

/**
 * How far the work has come: the pass over the files, the file, the lines of it that are read, and the rows that are done. A pass
 * that meets faults reads the files again for these: an answer that was paid for may stand behind a row's fault.
 */
const progress = z.object({
  phase: z.enum(['take', 'faults', 'hand']),
  pass: z.number(),
  file: z.number(),
  line: z.number(),
  handed: z.number(),
  /** How many faults the pass has met. */
  faults: z.number().default(0),
  /** How many results the last pass has missed; another follows once the rows that have theirs are done. */
  missing: z.number().default(0),
  /** How many rows are handed over by one call: fewer after a call that failed, since the function may lack the memory. */
  size: z.number().default(HAND),
});
type Progress = z.output<typeof progress>;
const start: Progress = progress.parse({ phase: 'take', pass: 1, file: 0, line: 0, handed: 0 });

interface Work {
  batch: BatchRow;
  begun: Begun;
  steps: Steps<Progress>;
  context: HandlerContext;
}

/** Takes the results of a batch, and gives each row its answer, exactly once. Long work goes on under another claim. */
export async function distributeBatch(
  id: number,
  begun: Begun,
  context: HandlerContext,
): Promise<z.output<typeof distributed> | HandedBack> {
  const batch = await callBatches(context, batchRow, 'model_batch_note', { p_job: { id } });
  const steps = await stepsOf('distributed', progress, context);
  const work = { batch, begun, steps, context };
  const from = steps.done.at(-1) ?? start;
  const at = from.phase === 'hand' ? from : await takeResults(work, from);
  if (!at || !(await handOver(work, at))) return handBack();
  if (at.missing > 0) {
    await steps.record({ ...at, phase: 'take', missing: 0 });
    throw new RetriableError('results_incomplete', `${at.missing} results of the batch are missing in its files.`);
  }
  const sums = await sumsOf(work);
  return { status: begun.status, lines: sums.lines, unanswered: sums.lapsed, cost_usd: sums.cost_usd };
}

const sums = z.object({
  lines: z.number(),
  unanswered: z.number(),
  lapsed: z.number(),
  cost_usd: z.number().nullable(),
});

function sumsOf({ batch, context }: Work): Promise<z.output<typeof sums>> {
  return callBatches(context, sums, 'model_batch_sums', { p_job: { id: batch.id } });
}

/** Reads the files on from where the last invocation ended. Returns how far it came; null when there is more. */
async function takeResults(work: Work, from: Progress): Promise<Progress | null> {
  const { batch, begun, steps, context } = work;
  const files = await filesOf(work, from.pass);
  let at = from;
  for (; at.file < files.length; at = { ...at, file: at.file + 1, line: 0 }) {
    const read = await takeFile(work, files[at.file] as string, at);
    at = { ...at, faults: at.faults + read.faults, line: read.line };
    if (read.isWhole) continue;
    await steps.record(at);
    return null;
  }
  const anew = { ...at, file: 0, line: 0, faults: 0 };
  if (at.phase === 'take' && at.faults > 0) {
    await steps.record({ ...anew, phase: 'faults' });
    return takeResults(work, { ...anew, phase: 'faults' });
  }
  const { unanswered } = await sumsOf(work);
  const lacking = begun.status === 'completed' ? unanswered : begun.results - ((batch.sent ?? 0) - unanswered);
  const missing = at.pass < MAX_PASSES ? Math.max(0, lacking) : 0;
  const done: Progress = { ...anew, phase: 'hand', pass: at.pass + 1, missing };
  if (missing > 0) {
    const about = { batch: batch.id, missing, pass: at.pass };
    context.log.warn('results of a batch are missing in its files, which are read anew', about);
  } else await endBatch(work);
  await steps.record(done);
  return done;
}

/**
 * Returns where the results are. The provider is asked anew where results were missing in the last pass, and where the batch named no
 * files when its time was over, though it had results.
 */
async function filesOf({ batch, begun, context }: Work, pass: number): Promise<string[]> {
  const { files, results } = begun;
  const areKnown = pass === 1 && (files.length > 0 || results === 0);
  if (areKnown || batch.job_id === null) return files;
  const provider = providerOf(batch, context.env);
  const state = await apiOf(batch).stateOf(batch.job_id, { provider, signal: context.signal });
  return state?.files ?? files;
}

/** Takes the answers in a file behind so many lines, or in the phase for them the faults. */
async function takeFile(
  { batch, context }: Work,
  file: string,
  { phase, line: from }: Progress,
): Promise<{ line: number; faults: number; isWhole: boolean }> {
  const provider = providerOf(batch, context.env);
  const { settings, table } = prices.parse(batch.prices);
  const counts = { unknown: 0, faults: 0 };
  let line = from;
  let taken: object[] = [];
  let size = 0;
  const seen = new Set<number>();
  const save = async () => {
    if (taken.length === 0) return;
    await callBatches(context, z.unknown(), 'model_batch_take', { p_job: { id: batch.id }, p_items: taken });
    taken = [];
    size = 0;
  };
  for await (const result of apiOf(batch).results(file, { provider, batch, signal: context.signal }, from)) {
    line += 1;
    if (result === 'unknown') counts.unknown += 1;
    else if (result.answer?.fault && phase === 'take') counts.faults += 1;
    else if (result.answer && (phase === 'take' || result.answer.fault) && !seen.has(result.line)) {
      const { answer } = result;
      seen.add(result.line);
      taken.push({ line: result.line, answer, usage: usageIn(answer, batch, { settings, table }) });
      size += result.size;
    }
    if (taken.length >= TAKE || size >= TAKE_SIZE) await save();
    if (line - from >= MAX_TAKEN) break;
  }
  await save();
  if (counts.unknown > 0) {
    context.log.warn('results of a batch that name none of its rows', { batch: batch.id, unknown: counts.unknown });
  }
  return { line, faults: counts.faults, isWhole: line - from < MAX_TAKEN };
}

const amount = z.number().optional();
const prices = z
  .object({
    settings: z.object({ input: amount, cached: amount, output: amount }).catch({}),
    table: z.custom<Parameters<typeof usageOf>[3]>().optional(),
  })
  .catch({ settings: {} });

/**
 * Returns the usage of an answer, whether or not its row still wants it. Null where the answer is of a form that cannot be
 * read: its row will report that, and the answers of other rows must not wait for it.
 */
function usageIn(answer: LineAnswer, batch: BatchRow, { settings, table }: z.output<typeof prices>): object | null {
  try {
    const response = 'body' in answer ? responseOf(batch.api, answer.body) : null;
    return response && usageOf({ ...response, metadata: { price: 'batch' } }, '', { prices: settings }, table);
  } catch {
    return null;
  }
}

const silences: Record<Begun['status'], [code: string, message: string]> = {
  completed: ['no_answer', 'The batch ended without an answer to this row.'],
  expired: ['batch_expired', 'The batch ended before this row’s turn.'],
  cancelled: ['batch_cancelled', 'The batch was cancelled before this row’s turn.'],
  never_begun: ['batch_expired', 'The time for batches was over before the batch began.'],
  empty: ['no_answer', 'The batch ended without an answer to this row.'],
  rejected: ['batch_rejected', 'The provider refused the batch.'],
};

/** Ends the batch: rows without an answer get the reason. */
async function endBatch({ batch, begun, context }: Work): Promise<void> {
  const [code, message] = silences[begun.status];
  const fault = begun.fault ?? { status: null, code, type: null, message };
  const p_job = { id: batch.id, status: begun.status, answer: { fault }, lapsed: begun.status !== 'rejected' };
  await callBatches(context, z.unknown(), 'model_batch_end', { p_job });
}

const nextRows = z.array(
  z.object({
    id: z.number(),
    attempt: z.number(),
    submission: z.number(),
    trace_id: z.string(),
    entity_id: z.string(),
  }),
);
const stageAnswer = z.object({ ended: z.number() });

/** Has the stage's own function finish its rows. False when there is more. */
async function handOver(work: Work, at: Progress): Promise<boolean> {
  const { batch, steps, context } = work;
  const { pipeline, stage, service } = batch;
  const platform = readPlatform(context.env);
  const rpc = dataApiRpc(platform);
  const { log } = context;
  let { size } = at;
  let handed = 0;
  let name: string | undefined;
  for (;;) {
    const rows = await callBatches(context, nextRows, 'model_batch_next', { p_job: { id: batch.id, limit: size } });
    if (rows.length === 0) return true;
    name ??= await functionOf();
    const jobs = rows.map(({ id, ...row }) => ({
      ...row,
      ...{ pipeline, stage, service, function: name, job_id: customIdOf(id, batch), awaits_start: false },
    }));
    const body = JSON.stringify({ pipeline, stage, jobs });
    await callStage(platform, name, { body, timeoutMs: HAND_TIMEOUT_MS }, stageAnswer).catch(async (error) => {
      await steps.record({ ...at, handed: at.handed + handed, size: Math.ceil(size / 4) });
      throw error;
    });
    size = Math.min(HAND, size * 2);
    const p_items = rows.map(({ id, submission }) => ({ id, submission }));
    const done = await callBatches(context, z.object({ handed: z.number() }), 'model_batch_handed', { p_items });
    if (done.handed === 0)
      throw new RetriableError('rows_busy', 'No row of the batch could take its answer now.', 10_000);
    handed += done.handed;
    if (handed < MAX_HANDED) continue;
    await steps.record({ ...at, handed: at.handed + handed, size });
    return false;
  }

  async function functionOf(): Promise<string> {
    const engine = createEngine({ rpc, retryUntil: () => 0, log });
    const about = { pipeline, stage, submission: 1, trace_id: '', entity_id: '', service: '' };
    const owner = await engine.jobOwner(about);
    if (owner) return owner.function;
    throw new MisconfiguredError(
      `The pipeline ${pipeline} has no stage ${stage} any more, whose rows the batch ${batch.id} answers.`,
    );
  }
}
