// Hands one request to a function's process, and answers in its place when it cannot.
import http from 'node:http';
import { keptConnections } from '../kept-connections.ts';
import type { FunctionProcess } from './function-process.ts';

const answerTimeoutMs = 150_000;

class ForwardError extends Error {}
class AnswerTimeout extends Error {}

/** Waits until the process listens, and hands it the request. Answers with the platform's codes where that fails. */
export async function callProcess(
  process: FunctionProcess,
  url: string,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  const finished = process.beginRequest();
  response.once('close', finished);
  try {
    const port = await process.listening;
    await forward(port, url, request, response);
  } catch (error) {
    if (response.headersSent) return void response.destroy();
    // A process that a limit ended may take a moment to go.
    await Promise.race([process.exited, new Promise((resolve) => setTimeout(resolve, 100))]);
    if (error instanceof AnswerTimeout) refuse(response, 504, 'IDLE_TIMEOUT', 'No answer within 150 seconds');
    else if (process.killedBy) refuse(response, 546, 'WORKER_LIMIT', 'The function reached a limit of the platform');
    else if (error instanceof ForwardError) refuse(response, 500, 'WORKER_ERROR', 'The function ended: see its log');
    else refuse(response, 503, 'BOOT_ERROR', `The function did not start: see its log (${(error as Error).message})`);
  }
}

function forward(port: number, url: string, request: http.IncomingMessage, response: http.ServerResponse) {
  return new Promise<void>((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: url, method: request.method, headers: request.headers };
    const forwarded = http.request({ ...options, agent: keptConnections }, (answer) => {
      clearTimeout(timer);
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      answer.once('error', reject);
      response.once('close', resolve);
    });
    const timer = setTimeout(() => forwarded.destroy(new AnswerTimeout()), answerTimeoutMs);
    forwarded.once('error', (error) => {
      clearTimeout(timer);
      reject(error instanceof AnswerTimeout ? error : new ForwardError(error.message));
    });
    response.once('close', () => forwarded.destroy());
    request.pipe(forwarded);
  });
}

/** Answers with a code and a message, as the platform does. */
export function refuse(response: http.ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ code, message }));
}
