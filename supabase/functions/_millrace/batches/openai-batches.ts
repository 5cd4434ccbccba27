import { z } from 'zod';
import { RetriableError } from '../errors.ts';
import { parseJson } from '../parse-json.ts';
import { type BatchApi, type BatchCall, type BatchResult, type BatchState, customIdOf, lineOf } from './batch-api.ts';
import { callProvider, linesAt } from './call-provider.ts';

/** The time in which this API does a batch; it knows no other. */
const window = '24h';

const batchError = z.object({
  code: z.string().nullish(),
  message: z.string().nullish(),
  line: z.number().int().nullish().catch(null),
});
const batchObject = z.object({
  id: z.string(),
  object: z.literal('batch'),
  status: z.string(),
  created_at: z.number(),
  input_file_id: z.string().nullish(),
  output_file_id: z.string().nullish(),
  error_file_id: z.string().nullish(),
  errors: z.object({ data: z.array(batchError).nullish() }).nullish(),
  request_counts: z.object({ total: z.number(), completed: z.number(), failed: z.number() }).nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
});
type OpenaiBatch = z.output<typeof batchObject>;
const page = z.object({ data: z.array(z.unknown()), has_more: z.boolean().nullish() });
const result = z.object({
  custom_id: z.string(),
  response: z.object({ status_code: z.coerce.number().min(100), body: z.unknown() }).nullish(),
  error: z.record(z.string(), z.unknown()).nullish().catch(null),
});
/** Codes of lines whose turn never came. */
const lapsedCodes = ['batch_expired', 'batch_cancelled'];

const underWay = ['validating', 'in_progress', 'finalizing'];
const states: Record<string, BatchState['state']> = {
  failed: 'rejected',
  completed: 'completed',
  expired: 'expired',
  cancelling: 'cancelling',
  cancelled: 'cancelled',
};

/**
 * OpenAI's batches, of Responses or of chat completions: a file of lines, a batch that names it, and files of results. The batch
 * carries its key in its metadata. By this or by the file that it names a batch whose answer got lost is found.
 */
export const openaiBatches: BatchApi = {
  async upload(lines, { provider, batch, signal }) {
    const url = urlOf(provider.api);
    const text = lines.map(
      ({ id, request }) =>
        `{"custom_id":"${customIdOf(id, batch)}","method":"POST","url":"${url}","body":${request}}\n`,
    );
    const form = new FormData();
    form.append('purpose', 'batch');
    form.append('file', new Blob(text, { type: 'application/jsonl' }), `millrace-${batch.key}-${batch.round}.jsonl`);
    const answer = await callProvider('/files', provider, { signal, body: form });
    return readAs(z.object({ id: z.string() }), answer).id;
  },
  async begin(file, _lines, { provider, batch, signal }) {
    const metadata = { millrace: batch.key, round: String(batch.round) };
    const body = { input_file_id: file, endpoint: urlOf(provider.api), completion_window: window, metadata };
    const key = `${batch.key}-${batch.round}`;
    const answer = readAs(batchObject, await callProvider('/batches', provider, { signal, body, key }));
    if (answer.input_file_id == null || answer.input_file_id === file) return answer.id;
    throw new RetriableError('invalid_output', 'The provider answered with a batch of another file.');
  },
  async find(call, { file }) {
    for await (const one of recentBatches(call)) {
      // A provider may drop the metadata.
      if (hasKey(one, call.batch) || (file !== null && one.input_file_id === file)) {
        return { id: one.id, unsure: false };
      }
    }
    return null;
  },
  async twinsOf(id, call) {
    const twins: string[] = [];
    for await (const one of recentBatches(call)) {
      if (one.id !== id && hasKey(one, call.batch) && underWay.includes(one.status)) twins.push(one.id);
    }
    return twins;
  },
  owns: async () => true,
  async stateOf(id, { provider, signal }) {
    const answer = readAs(batchObject, await callProvider(`/batches/${encodeURIComponent(id)}`, provider, { signal }));
    const { status, request_counts: counts, output_file_id: output, error_file_id: failed } = answer;
    const files = [output, failed].filter((file) => file != null);
    return {
      // Results are paid for, whatever the status says.
      state: status === 'failed' && output != null ? 'expired' : (states[status] ?? 'running'),
      files,
      lacksFiles: status !== 'failed' && lacksFiles(files, answer),
      results: (counts?.completed ?? 0) + (status === 'completed' ? (counts?.failed ?? 0) : 0),
      faults: (answer.errors?.data ?? []).map(({ line, code, message }) => ({
        line: line ?? null,
        fault: { status: 400, code: code ?? null, type: null, message: message ?? 'no reason given' },
      })),
    };
  },
  async cancel(id, { provider, signal }) {
    await callProvider(`/batches/${encodeURIComponent(id)}/cancel`, provider, { signal, method: 'POST' });
  },
  async *results(file, { provider, batch, signal }, from = 0) {
    let read = 0;
    for await (const text of linesAt(`/files/${encodeURIComponent(file)}/content`, provider, { signal })) {
      if (++read > from) yield resultOf(text, batch);
    }
  },
};

const hasKey = ({ metadata }: OpenaiBatch, { key, round }: BatchCall['batch']) =>
  metadata?.millrace === key && String(metadata.round) === String(round);

/** The account's batches that were begun since this one's rows were gathered, the newest first. */
async function* recentBatches({ provider, batch, signal }: BatchCall): AsyncGenerator<OpenaiBatch> {
  const earliest = begunBefore(batch.begun_at);
  let after = '';
  for (;;) {
    const answer = await callProvider(`/batches?limit=100${after}`, provider, { signal });
    const { data, has_more: more } = readAs(page, answer);
    // Another program's batch in the same account may be of another form.
    const batches = data.flatMap((item) => batchObject.safeParse(item).data ?? []);
    yield* batches;
    const last = batches.at(-1);
    // No batch was begun before its rows were gathered.
    if (!more || data.length === 0 || (last && batches.every(({ created_at: at }) => at < earliest))) return;
    const next = last ? `&after=${encodeURIComponent(last.id)}` : after;
    if (next === after) throw new RetriableError('invalid_output', 'The provider’s list of batches does not go on.');
    after = next;
  }
}

function lacksFiles(files: string[], { output_file_id: output, request_counts: counts }: OpenaiBatch) {
  if (!counts) return false;
  return (counts.completed > 0 && output == null) || (counts.failed > 0 && files.length === 0);
}

const urlOf = (api: string) => (api === 'chat' ? '/v1/chat/completions' : '/v1/responses');

/** Seconds of the epoch before which no call can have begun the batch; clocks may differ by an hour. */
const begunBefore = (begunAt: string | null) => (begunAt ? Date.parse(begunAt) / 1000 - 3600 : 0);

function resultOf(text: string, batch: BatchCall['batch']): BatchResult | 'unknown' {
  const parsed = result.safeParse(parseJson(text));
  const line = parsed.success ? lineOf(parsed.data.custom_id, batch) : null;
  if (!parsed.success || line === null) return 'unknown';
  const { response, error } = parsed.data;
  const size = text.length;
  if (response && response.status_code < 400) return { line, size, answer: { body: response.body, fault: null } };
  if (!response && lapsedCodes.includes(String(error?.code))) return { line, size, answer: null };
  const said = ((response?.body as { error?: unknown } | null)?.error ?? error ?? {}) as Record<string, unknown>;
  const word = (name: string) => (typeof said[name] === 'string' ? (said[name] as string) : null);
  const fault = { code: word('code'), type: word('type'), message: word('message') ?? 'no reason given' };
  return { line, size, answer: { fault: { ...fault, status: response?.status_code ?? 500 } } };
}

/** Reads an answer of the API. Throws a StageError where it is of another form. */
export function readAs<S extends z.ZodType>(schema: S, answer: unknown): z.output<S> {
  const parsed = schema.safeParse(answer);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const said = `${issue?.path.join('.') || 'the whole'}: ${issue?.message}`;
  throw new RetriableError('invalid_output', 'The provider’s batches answered in another form.', undefined, said);
}
