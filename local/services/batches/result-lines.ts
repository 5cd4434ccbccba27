import { randomBytes } from 'node:crypto';
import type { Batch, BatchJobs, Line } from './batch-jobs.ts';

/** Returns the lines of a batch's results: OpenAI's two files, or the only one of Anthropic. */
export function resultLines(jobs: BatchJobs, batch: Batch): { output: string[]; errors: string[] } {
  const { api, lines, plan } = batch;
  const change = plan.results ?? ((same: string[]) => same);
  const count = jobs.answered(batch).length;
  const output: string[] = [];
  const errors: string[] = [];
  for (const [at, line] of lines.entries()) {
    const fault = at < count ? plan.errorOf?.(line.body) : undefined;
    const isError = api !== 'messages' && (at >= count || fault !== undefined);
    const made =
      api === 'messages' ? messagesLine(jobs, batch, line, at < count) : openaiLine(jobs, batch, line, at < count);
    (isError ? errors : output).push(JSON.stringify(made));
  }
  return { output: change(output), errors };
}

function openaiLine(jobs: BatchJobs, { api, plan, isCancelled }: Batch, line: Line, isAnswered: boolean): object {
  const { id: custom_id, body } = line;
  const id = `batch_req_${randomBytes(6).toString('hex')}`;
  if (!isAnswered) {
    const code = isCancelled ? 'batch_cancelled' : 'batch_expired';
    const message = 'This request could not be executed before the completion window expired.';
    return { id, custom_id, response: null, error: { code, message } };
  }
  const request_id = id.replace('batch_', '');
  const fault = plan.errorOf?.(body);
  if (!fault) {
    return { id, custom_id, response: { status_code: 200, request_id, body: jobs.answerOf(api, body) }, error: null };
  }
  const { status, code, message } = fault;
  const error = { message, type: 'invalid_request_error', param: null, code };
  return { id, custom_id, response: { status_code: status, request_id, body: { error } }, error: null };
}

function messagesLine(jobs: BatchJobs, { plan, isCancelled }: Batch, line: Line, isAnswered: boolean): object {
  const { id: custom_id, body } = line;
  if (!isAnswered) return { custom_id, result: { type: isCancelled ? 'canceled' : 'expired' } };
  const fault = plan.errorOf?.(body);
  if (!fault) return { custom_id, result: { type: 'succeeded', message: jobs.answerOf('messages', body) } };
  const error = { type: fault.code, message: fault.message };
  return { custom_id, result: { type: 'errored', error: { type: 'error', error, request_id: null } } };
}
