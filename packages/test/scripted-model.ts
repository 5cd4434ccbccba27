// A model that speaks the Responses API and answers as a script says.
import { faultReply, listen, type ReceivedRequest, type Reply } from './scripted-server.ts';
import type { startModel as StartModel } from './test.d.ts';

/** Returns a response of the Responses API with this text, or this object as JSON, as its answer. */
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

/** Starts a model; each request is answered with the script's next answer, and the last one is repeated. */
export const startModel: typeof StartModel = async () => {
  const script: unknown[] = [];
  const asked: { background?: boolean; metadata?: unknown }[] = [];
  /** Responses that are fetched later, by their ids: those of background mode. */
  const kept = new Map<string, unknown>();
  const { url, close } = await listen(({ method, path, body }: ReceivedRequest): Reply => {
    if (method === 'GET') {
      const found = kept.get(path.split('/').at(-1) ?? '');
      return found ? { json: found } : { status: 404, json: { error: { code: 'not_found', message: 'no response' } } };
    }
    const request = JSON.parse(body || '{}');
    asked.push(request);
    if (script.length === 0) {
      const message = 'The script of the model has no answer: call answers() first.';
      return { status: 400, json: { error: { code: 'no_script', message } } };
    }
    const answer = script.length > 1 ? script.shift() : script[0];
    const id = `resp_${asked.length}`;
    const fault = faultReply(answer);
    if (fault) return fault;
    const response = modelResponse(answer, { id, metadata: request.metadata ?? {} });
    if (!request.background) return { json: response };
    kept.set(id, response);
    return { json: { ...response, status: 'queued', output: [], usage: null } };
  });
  return {
    url,
    env: { LLM_URL: `${url}/v1`, LLM_AUTH_TOKEN: 'test', LLM_MODEL: 'test-model' },
    answers: (...answers) => void script.push(...answers),
    asked,
    close,
    [Symbol.asyncDispose]: close,
  };
};
