import type http from 'node:http';

const corsHeaders = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET,HEAD,PUT,PATCH,POST,DELETE,OPTIONS',
  'access-control-max-age': '3600',
};

/** Lets pages of any origin read the answer; answers a browser's preflight itself and then returns true. */
export function allowAnyOrigin(request: http.IncomingMessage, response: http.ServerResponse): boolean {
  if (request.method !== 'OPTIONS') {
    for (const [name, value] of Object.entries(corsHeaders)) response.setHeader(name, value);
    return false;
  }
  const asked = request.headers['access-control-request-headers'] ?? '*';
  response.writeHead(200, { ...corsHeaders, 'access-control-allow-headers': asked }).end();
  return true;
}
