import { z } from 'zod';
import { RetriableError } from '../errors.ts';
import { errorStatuses } from '../model/model-errors.ts';
import { parseJson } from '../parse-json.ts';
import { type BatchApi, type BatchCall, type BatchResult, customIdOf, lineOf } from './batch-api.ts';
import { callProvider, linesAt } from './call-provider.ts';
import { readAs } from './openai-batches.ts';

/** How far the provider's clock may be behind the database's. */
const CLOCK_MS = 3_600_000;

/** By how many lines of its results a batch is recognized: a stranger's may stand among them. */
const MAX_LOOKED = 200;

const counts = z.object({
  processing: z.number(),
  succeeded: z.number(),
  errored: z.number(),
  canceled: z.number(),
  expired: z.number(),
});
const messageBatch = z.object({
  id: z.string(),
  type: z.literal('message_batch'),
  processing_status: z.string(),
  request_counts: counts,
  created_at: z.string(),
  results_url: z.string().nullish(),
});
type MessageBatch = z.output<typeof messageBatch>;
const page = z.object({ data: z.array(messageBatch), has_more: z.boolean().nullish(), last_id: z.string().nullish() });
const apiFault = z.object({ type: z.string().nullish(), message: z.string().nullish() });
const result = z.object({
  custom_id: z.string(),
  result: z.object({
    type: z.string(),
    message: z.unknown().optional(),
    // The error of the API, or an envelope around it.
    error: apiFault.extend({ error: apiFault.nullish() }).nullish(),
  }),
});

/**
 * Anthropic's message batches: one request with all questions, and one file of results. A batch has no metadata: after a lost answer
 * it is recognized by the custom_ids in its results; until these are there, by its age and the number of its questions.
 */
export const anthropicBatches: BatchApi = {
  upload: async () => null,
  async begin(_file, lines, { provider, batch, signal }) {
    const requests = lines.map(
      ({ id, request }, at) => `${at > 0 ? ',' : ''}{"custom_id":"${customIdOf(id, batch)}","params":${request}}`,
    );
    const body = new Blob(['{"requests":[', ...requests, ']}']);
    const key = `${batch.key}-${batch.round}`;
    return readAs(messageBatch, await callProvider('/messages/batches', provider, { signal, body, key })).id;
  },
  async find(call, { areKnown }) {
    const candidates = await candidatesOf(call);
    const ended = candidates.filter((one) => one.processing_status === 'ended' && one.results_url);
    for (const { id } of ended) if (await this.owns(resultsOf(id), call)) return { id, unsure: false };
    const open = candidates.filter((one) => !ended.includes(one)).map(({ id }) => id);
    const known = await areKnown(open);
    const id = open.find((one) => !known.includes(one));
    return id === undefined ? null : { id, unsure: true };
  },
  // A twin cannot be told from another program's batch before its results are there.
  twinsOf: async () => [],
  async owns(file, { provider, batch, signal }) {
    let read = 0;
    let others = 0;
    for await (const text of linesAt(file, provider, { signal })) {
      // Counts results alone: an error in their place does not show whose batch it is.
      if (result.safeParse(parseJson(text)).success) others += 1;
      if (resultOf(text, batch) !== 'unknown') return true;
      if (++read === MAX_LOOKED) break;
    }
    if (others > 0) return false;
    throw new RetriableError('results_incomplete', 'The results by which a batch is recognized cannot be read now.');
  },
  async stateOf(id, { provider, signal }) {
    const answer = await callProvider(`/messages/batches/${encodeURIComponent(id)}`, provider, { signal });
    const { processing_status: status, request_counts: done } = readAs(messageBatch, answer);
    const ended = done.canceled > 0 ? 'cancelled' : done.expired > 0 ? 'expired' : 'completed';
    return {
      state: status === 'ended' ? ended : status === 'canceling' ? 'cancelling' : 'running',
      files: status === 'ended' ? [resultsOf(id)] : [],
      results: done.succeeded + done.errored,
      faults: [],
    };
  },
  async cancel(id, { provider, signal }) {
    await callProvider(`/messages/batches/${encodeURIComponent(id)}/cancel`, provider, { signal, method: 'POST' });
  },
  async *results(file, { provider, batch, signal }, from = 0) {
    let read = 0;
    for await (const text of linesAt(file, provider, { signal })) if (++read > from) yield resultOf(text, batch);
  },
};

/** Returns the address of results. The API's own results_url is not followed: the key goes to the settings' host alone. */
const resultsOf = (id: string) => `/messages/batches/${encodeURIComponent(id)}/results`;

/** Finds batches with as many questions as ours, created at most an hour before ours was begun: clocks differ. */
async function candidatesOf({ provider, batch, signal }: BatchCall): Promise<MessageBatch[]> {
  const from = Date.parse(batch.begun_at ?? '') - CLOCK_MS;
  const found: MessageBatch[] = [];
  let after = '';
  for (;;) {
    const answer = await callProvider(`/messages/batches?limit=100${after}`, provider, { signal });
    const { data, has_more: more, last_id: last } = readAs(page, answer);
    const young = data.filter((one) => !(Date.parse(one.created_at) < from));
    found.push(...young.filter((one) => totalOf(one) === batch.sent));
    if (!more || !last || young.length < data.length) return found;
    after = `&after_id=${encodeURIComponent(last)}`;
  }
}

const totalOf = ({ request_counts: done }: MessageBatch) =>
  done.processing + done.succeeded + done.errored + done.canceled + done.expired;

function resultOf(text: string, batch: BatchCall['batch']): BatchResult | 'unknown' {
  const parsed = result.safeParse(parseJson(text));
  const line = parsed.success ? lineOf(parsed.data.custom_id, batch) : null;
  if (!parsed.success || line === null) return 'unknown';
  const { type, message, error } = parsed.data.result;
  const size = text.length;
  if (type === 'succeeded') return { line, size, answer: { body: message, fault: null } };
  if (type !== 'errored') return { line, size, answer: null };
  const said = error?.error ?? error;
  const named = said?.type ?? null;
  const status = errorStatuses[named ?? ''] ?? 500;
  const fault = { status, code: null, type: named, message: said?.message ?? 'no reason given' };
  return { line, size, answer: { fault } };
}
