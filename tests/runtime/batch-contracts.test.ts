// The clients and the stand-in of batches, held to the objects that the providers' references show.
import { expect, test } from 'vitest';
import { startBatches } from '../../local/services/batches/server.ts';
import { anthropicBatches } from '../../supabase/functions/_millrace/batches/anthropic-batches.ts';
import type { BatchApi, BatchCall } from '../../supabase/functions/_millrace/batches/batch-api.ts';
import type { BatchRow } from '../../supabase/functions/_millrace/batches/batch-rows.ts';
import { openaiBatches } from '../../supabase/functions/_millrace/batches/openai-batches.ts';
import type { ModelApi } from '../../supabase/functions/_millrace/model/model-settings.ts';
import { type Reply, startServer } from '../support/http-server.ts';

/** developers.openai.com/api/reference, the batch object. */
const openaiBatch = {
  id: 'batch_abc123',
  object: 'batch',
  endpoint: '/v1/responses',
  errors: null,
  input_file_id: 'file-abc123',
  completion_window: '24h',
  status: 'completed',
  output_file_id: 'file-cvaTdG',
  error_file_id: 'file-HOWS94',
  created_at: 1711471533,
  in_progress_at: 1711471538,
  expires_at: 1711557933,
  finalizing_at: 1711493133,
  completed_at: 1711493163,
  failed_at: null,
  expired_at: null,
  cancelling_at: null,
  cancelled_at: null,
  request_counts: { total: 100, completed: 95, failed: 5 },
  metadata: { customer_id: 'user_123456789' },
};
/** platform.claude.com/docs/en/api/messages/batches/retrieve. */
const messageBatch = {
  id: 'msgbatch_013Zva2CMHLNnXjNJJKqJ2EF',
  archived_at: null,
  cancel_initiated_at: null,
  created_at: '2024-08-20T18:37:24.100435Z',
  ended_at: '2024-08-20T18:37:24.100435Z',
  expires_at: '2024-08-20T18:37:24.100435Z',
  processing_status: 'ended',
  request_counts: { canceled: 0, errored: 30, expired: 10, processing: 0, succeeded: 50 },
  results_url: 'https://api.anthropic.com/v1/messages/batches/msgbatch_013Zva2CMHLNnXjNJJKqJ2EF/results',
  type: 'message_batch',
};

const batch = { key: '0123456789abcdef', round: 1, begun_at: '2024-08-20T18:37:00Z', sent: 2 } as BatchRow;

function callOf(api: ModelApi, url: string): BatchCall {
  const provider = { prefix: 'LLM', api, url, model: 'm', mode: 'inline' as const, prices: {} };
  return { provider, batch, signal: AbortSignal.timeout(5_000) };
}

test.for<[ModelApi, BatchApi, object, object]>([
  [
    'responses',
    openaiBatches,
    openaiBatch,
    { state: 'completed', files: ['file-cvaTdG', 'file-HOWS94'], results: 100 },
  ],
  ['messages', anthropicBatches, messageBatch, { state: 'expired', results: 80 }],
])('reads a batch as the reference of %s shows it', async ([api, client, shown, state]) => {
  const server = await startServer((): Reply => ({ json: shown }));
  expect(await client.stateOf('batch_abc123', callOf(api, server.url))).toMatchObject(state);
});

test.for<[ModelApi, string[], object[]]>([
  [
    'responses',
    [
      '{"id": "batch_req_123", "custom_id": "0123456789abcdef-2", "response": {"status_code": 200, "request_id": "req_123", "body": {"id": "resp_1", "object": "response"}}, "error": null}',
      '{"id": "batch_req_124", "custom_id": "0123456789abcdef-3", "response": null, "error": {"code": "batch_expired", "message": "This request could not be executed before the completion window expired."}}',
    ],
    [
      { line: 2, answer: { body: { object: 'response' } } },
      { line: 3, answer: null },
    ],
  ],
  [
    'messages',
    [
      '{"custom_id":"0123456789abcdef-2","result":{"type":"succeeded","message":{"id":"msg_1","type":"message"}}}',
      '{"custom_id":"0123456789abcdef-3","result":{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: too high"}}}}',
      '{"custom_id":"0123456789abcdef-4","result":{"type":"canceled"}}',
    ],
    [
      { line: 2, answer: { body: { type: 'message' } } },
      { line: 3, answer: { fault: { status: 400, message: 'max_tokens: too high' } } },
      { line: 4, answer: null },
    ],
  ],
])('reads results as the reference of %s shows them', async ([api, lines, expected]) => {
  const server = await startServer((): Reply => ({ bytes: Buffer.from(`${lines.join('\n')}\n`) }));
  const client = api === 'messages' ? anthropicBatches : openaiBatches;
  const results = [];
  for await (const result of client.results('/file', callOf(api, server.url))) results.push(result);
  expect(results).toMatchObject(expected);
});

test('an endless line of results is skipped, and an endless answer refused', async () => {
  const long = `{"custom_id":"0123456789abcdef-3","response":{"status_code":200,"body":"${'x'.repeat(5_000_000)}"}}`;
  const line = '{"custom_id":"0123456789abcdef-2","response":{"status_code":200,"body":{"object":"response"}}}';
  const server = await startServer(
    ({ path }): Reply => ({ bytes: Buffer.from(path.includes('content') ? `${long}\n${line}\n` : long.repeat(4)) }),
  );
  const call = callOf('responses', server.url);
  const results = [];
  for await (const result of openaiBatches.results('f', call)) results.push(result);
  expect(results).toMatchObject(['unknown', { line: 2 }]);
  await expect(openaiBatches.stateOf('batch_1', call)).rejects.toThrow('too long');
});

test.for<[ModelApi, object]>([
  ['responses', openaiBatch],
  ['messages', messageBatch],
])('the stand-in shows no field that the reference of %s lacks', async ([api, shown]) => {
  const site = await startBatches({ answer: () => '{}' });
  const call = callOf(api, `${site.url}/v1`);
  const client = api === 'messages' ? anthropicBatches : openaiBatches;
  const lines = [
    { id: 1, request: '{"model":"m"}' },
    { id: 2, request: '{"model":"m"}' },
  ];
  const id = await client.begin(await client.upload(lines, call), lines, call);
  const path = api === 'messages' ? `/v1/messages/batches/${id}` : `/v1/batches/${id}`;
  const answer = await (await fetch(`${site.url}${path}`)).json();
  expect(Object.keys(shown)).toEqual(expect.arrayContaining(Object.keys(answer as object)));
  await site.stop();
});
