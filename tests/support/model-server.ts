import { type ReceivedRequest, type Reply, startServer } from './http-server.ts';

/** A response of the Responses API with this text as its answer. */
export function modelResponse(text: unknown, changes: object = {}) {
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'test-model-2026',
    error: null,
    incomplete_details: null,
    metadata: {},
    output: [
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [
          { type: 'output_text', annotations: [], text: typeof text === 'string' ? text : JSON.stringify(text) },
        ],
      },
    ],
    usage: { input_tokens: 1_000, output_tokens: 100, total_tokens: 1_100 },
    ...changes,
  };
}

/** A tiny server that speaks the Responses API, and the settings that lead to it. */
export async function startModelServer(reply: (request: ReceivedRequest) => Reply | null) {
  const server = await startServer(reply);
  const env = { LLM_URL: `${server.url}/v1`, LLM_AUTH_TOKEN: 'token', LLM_MODEL: 'test-model' };
  const asked = () => server.received.map((request) => JSON.parse(request.body || '{}'));
  return { ...server, env, asked };
}
