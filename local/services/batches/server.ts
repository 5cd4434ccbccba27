import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Batch, BatchJobs, type Line, type Plan } from './batch-jobs.ts';
import { resultLines } from './result-lines.ts';

/** The calls of the two APIs, by what they do. */
export type Action = 'upload' | 'begin' | 'list' | 'poll' | 'cancel' | 'results' | 'direct';

/** A fault of one call: an error in the place of its work, or the loss of its answer, or of a part of it. */
export type Fault = { status: number } | 'lost' | 'cut';

export interface BatchesOptions {
  /** How each batch goes; `at` counts them from 0. */
  plan?(batch: Batch, at: number): Plan;
  /** The provider's clock; without it, the machine's. */
  now?(): Promise<number>;
  /** The text of the answer to a question. */
  answer(body: Record<string, unknown>): string;
  /** The fault of a call; `at` counts the calls of its kind from 0. */
  fault?(action: Action, at: number): Fault | undefined;
  /** Called once a call is worked and before it is answered. */
  worked?(action: Action, at: number): unknown;
  /** Changes the body of an answer, which is JSON, or the text of results. */
  answered?(action: Action, at: number, body: unknown): unknown;
}

/**
 * Starts a stand-in of OpenAI's batches (files, batches) and Anthropic's (message batches), with the direct calls beside them. It
 * buys nothing: `jobs.bought` counts what would have been paid for.
 */
export async function startBatches(options: BatchesOptions) {
  const jobs = new BatchJobs(options.plan ?? (() => ({})), options.answer);
  const calls: Partial<Record<Action, number>> = {};
  const server = createServer((request, response) => void answer(request, response, { jobs, calls, options }));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const stop = () => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return { url: `http://127.0.0.1:${port}`, jobs, calls, stop };
}

interface Site {
  jobs: BatchJobs;
  calls: Partial<Record<Action, number>>;
  options: BatchesOptions;
}

async function answer(request: IncomingMessage, response: ServerResponse, site: Site): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const url = new URL(request.url ?? '/', 'http://batches');
  const path = url.pathname.replace(/^\/v1/, '');
  const action = actionOf(request.method ?? 'GET', path);
  const { calls, jobs, options } = site;
  const at = calls[action] ?? 0;
  calls[action] = at + 1;
  const fault = options.fault?.(action, at);
  if (typeof fault === 'object')
    return send(response, fault.status, { error: { message: 'try again', type: 'server_error', code: null } });
  jobs.now = (await options.now?.()) ?? Date.now();
  const { status, body: worked } = work(action, path, url, Buffer.concat(chunks), site);
  await options.worked?.(action, at);
  const body = options.answered ? options.answered(action, at, worked) : worked;
  if (fault === 'lost') return void response.destroy();
  if (fault === 'cut' && typeof body === 'string') return send(response, status, body.slice(0, body.length * 0.6));
  send(response, status, body);
}

function actionOf(method: string, path: string): Action {
  if (path === '/files') return 'upload';
  if (/\/(content|results)$/.test(path)) return 'results';
  if (path.endsWith('/cancel')) return 'cancel';
  if (/\/batches$/.test(path)) return method === 'POST' ? 'begin' : 'list';
  return /\/batches\/[^/]+$/.test(path) ? 'poll' : 'direct';
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

type Answer = { status: number; body: unknown };
const unknown: Answer = { status: 404, body: { error: { message: 'not found', type: 'not_found_error', code: null } } };

function work(action: Action, path: string, url: URL, bytes: Buffer, { jobs }: Site): Answer {
  const isMessages = path.startsWith('/messages');
  const ok = (body: unknown): Answer => ({ status: 200, body });
  if (action === 'upload') return ok({ id: jobs.keepFile(fileIn(bytes)), object: 'file', purpose: 'batch' });
  if (action === 'direct') return ok(direct(jobs, path, JSON.parse(bytes.toString())));
  if (action === 'list') return ok(list(jobs, isMessages, url));
  if (action === 'begin') {
    const batch = isMessages ? beginMessages(jobs, bytes) : beginOpenai(jobs, bytes);
    return batch ? ok(shown(jobs, batch)) : unknown;
  }
  const id = path.split('/').find((part) => /^(?:msgbatch|batch|file)_/.test(part)) ?? '';
  // A file of results is kept as the name of its batch, and of which file it is.
  const [batchId = '', which = 'output'] = (jobs.files.get(id) ?? id).split(' ');
  const batch = jobs.batches.find((one) => one.id === batchId);
  if (!batch) return unknown;
  if (action === 'cancel') batch.isCancelled = true;
  if (action === 'results')
    return ok(`${resultLines(jobs, batch)[which === 'errors' ? 'errors' : 'output'].join('\n')}\n`);
  batch.polls += 1;
  return ok(shown(jobs, batch));
}

/** Returns the file in a form, as fetch writes it. */
function fileIn(bytes: Buffer): string {
  const text = bytes.toString();
  const boundary = text.slice(0, text.indexOf('\r\n'));
  const part = text.split(boundary).find((one) => one.includes('filename=')) ?? '';
  return part.slice(part.indexOf('\r\n\r\n') + 4).trimEnd();
}

function beginOpenai(jobs: BatchJobs, bytes: Buffer): Batch | null {
  const { input_file_id: file, endpoint, metadata } = JSON.parse(bytes.toString());
  const text = jobs.files.get(file);
  if (text === undefined) return null;
  const lines = text.split('\n').map((line): Line => {
    const { custom_id: id, body } = JSON.parse(line);
    return { id, body };
  });
  return jobs.begin(endpoint === '/v1/responses' ? 'responses' : 'chat', lines, { metadata, file });
}

function beginMessages(jobs: BatchJobs, bytes: Buffer): Batch {
  const { requests } = JSON.parse(bytes.toString()) as { requests: { custom_id: string; params: Line['body'] }[] };
  return jobs.begin(
    'messages',
    requests.map(({ custom_id: id, params: body }) => ({ id, body })),
  );
}

function direct(jobs: BatchJobs, path: string, body: Record<string, unknown>): unknown {
  jobs.buy(body);
  const api = path === '/messages' ? 'messages' : path === '/responses' ? 'responses' : 'chat';
  return jobs.answerOf(api, body, 'standard');
}

function list(jobs: BatchJobs, isMessages: boolean, url: URL): object {
  const all = jobs.batches.filter(({ api }) => (api === 'messages') === isMessages);
  const after = url.searchParams.get(isMessages ? 'after_id' : 'after');
  const from = after ? all.findIndex(({ id }) => id === after) + 1 : 0;
  const data = all.slice(from, from + Number(url.searchParams.get('limit') ?? 20));
  const ids = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
  const has_more = from + data.length < all.length;
  return { object: 'list', data: data.map((batch) => shown(jobs, batch)), has_more, ...ids };
}

/** Returns a batch as its API has it. */
function shown(jobs: BatchJobs, batch: Batch): object {
  const state = jobs.stateOf(batch);
  const { id, api, lines, plan, createdAt, metadata, isCancelled } = batch;
  const answered = jobs.answered(batch);
  const failed = answered.filter(({ body }) => plan.errorOf?.(body)).length;
  const done = answered.length - failed;
  const isOver = state !== 'running';
  if (api === 'messages') {
    const left = lines.length - answered.length;
    const over = {
      succeeded: done,
      errored: failed,
      canceled: isCancelled ? left : 0,
      expired: isCancelled ? 0 : left,
    };
    const none = { succeeded: 0, errored: 0, canceled: 0, expired: 0 };
    return {
      ...{ id, type: 'message_batch', processing_status: isOver ? 'ended' : 'in_progress' },
      request_counts: isOver ? { processing: 0, ...over } : { processing: lines.length, ...none },
      created_at: new Date(createdAt).toISOString(),
      results_url: isOver ? `https://api.anthropic.com/v1/messages/batches/${id}/results` : null,
    };
  }
  const hasFiles = isOver && state !== 'rejected' && batch.polls > (plan.filesAfter ?? 0);
  const hasErrors = failed > 0 || answered.length < lines.length;
  const errors = (plan.invalid ?? []).map((line) => ({
    code: 'invalid_json_line',
    line: Number.isNaN(line) ? null : line,
    message: 'This line is not parseable as valid JSON.',
    param: null,
  }));
  return {
    ...{
      id,
      object: 'batch',
      endpoint: api === 'chat' ? '/v1/chat/completions' : '/v1/responses',
      completion_window: '24h',
    },
    status: state === 'running' ? 'in_progress' : state === 'rejected' ? 'failed' : state,
    created_at: Math.floor(createdAt / 1000),
    input_file_id: batch.file,
    output_file_id: hasFiles && done > 0 ? keep(jobs, `${id} output`) : null,
    error_file_id: hasFiles && hasErrors ? keep(jobs, `${id} errors`) : null,
    errors: state === 'rejected' ? { object: 'list', data: errors } : null,
    request_counts: { total: lines.length, completed: isOver ? done : 0, failed: isOver ? failed : 0 },
    metadata,
  };
}

/** Returns the id of a file of results, which is made when it is read. */
function keep(jobs: BatchJobs, name: string): string {
  const id = `file_${name.replace(/\W/g, '-')}`;
  jobs.files.set(id, name);
  return id;
}
