import { modelResponse } from '../../../packages/test/scripted-model.ts';
import { type ReceivedRequest, type Reply, startServer } from '../http-server.ts';

export { modelResponse };

/** A tiny server that speaks the Responses API, and the settings that lead to it. */
export async function startModelServer(reply: (request: ReceivedRequest) => Reply | null) {
  const server = await startServer(reply);
  const env = { LLM_URL: `${server.url}/v1`, LLM_AUTH_TOKEN: 'token', LLM_MODEL: 'test-model' };
  const asked = () => server.received.map((request) => JSON.parse(request.body || '{}'));
  return { ...server, env, asked };
}
