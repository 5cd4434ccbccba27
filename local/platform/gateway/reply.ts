import type http from 'node:http';

/** Answers with a JSON object. */
export function reply(response: http.ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
