// The stand-in of the model behind a wait of one to three seconds, drawn by the number of the call.
import http from 'node:http';
import { startModel } from '../../../local/services/model/server.ts';
import { type Calls, startWaiting, waitOf } from './call-service.ts';

const token = 'bench_token';

/** Starts the model; `env` leads the functions to it. Its calls count for no row. */
export async function startSlowModel(): Promise<Calls & { env: Record<string, string> }> {
  const model = await startModel({ env: { LLM_AUTH_TOKEN: token } });
  let number = 0;
  const calls = await startWaiting((request) => {
    number += 1;
    return { row: 0, ms: waitOf(number), answer: (response) => forward(model.url, request, response) };
  });
  return {
    ...calls,
    env: { LLM_URL: `${calls.url}/v1`, LLM_AUTH_TOKEN: token, LLM_MODEL: 'local' },
    async stop() {
      await calls.stop();
      await model.stop();
    },
  };
}

function forward(base: string, request: http.IncomingMessage, response: http.ServerResponse): void {
  const { method, headers, url } = request;
  const forwarded = http.request(`${base}${url}`, { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  forwarded.once('error', () => response.destroy());
  request.pipe(forwarded);
}
