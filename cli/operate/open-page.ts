// millrace open: the operator's page from this machine. The key stays in this process; a browser comes in by a link, once.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { reply } from '../../local/platform/gateway/reply.ts';
import { servePage } from '../../local/platform/gateway/serve-page.ts';
import { urlOf } from '../../local/platform/gateway/url-of.ts';
import { createOperateApi, type OperateApi } from '../../local/platform/operate/operate-api.ts';
import { whenNpmEnds } from '../../local/platform/parent-ends.ts';
import { CommandError } from '../command-error.ts';
import { keepPage } from '../project/keep-page.ts';
import { readPort } from '../read-port.ts';
import { type Context, defineOperate, textOf } from './context.ts';
import { say } from './say.ts';

export const open = defineOperate({
  usage: `npx millrace open [--port N] [--remote[=REF]]
  Serves the operator's page on 127.0.0.1 until ctrl-C, and prints a link that lets one browser in, once. Messages about alerts
  link there from then on, unless they link to a page that you host (npx millrace connect --page=URL).
  --port N  on this port (default: the one before, where that is free)`,
  words: 0,
  takes: ['port'],
  run: serve,
});

async function serve(context: Context): Promise<0> {
  const { target } = context;
  const given = readPort('--port', textOf(context, 'port'));
  // Reads once, so that a refused key fails the command and not the page in a browser.
  await context.api.read('overview');
  // A user's token may not write the page's address: that is no error.
  const keep = (page: string | null) => keepPage(target.url, target.headers, page).catch(() => '');
  const before = /^http:\/\/127\.0\.0\.1:(\d+)\/operate\/$/.exec(await keep(null))?.[1];
  let api: OperateApi | undefined;
  const server = http.createServer((request, response) => {
    answer(api, request, response).catch((error) => {
      if (response.headersSent) response.destroy();
      else reply(response, 500, { message: String(error) });
    });
  });
  // Tries the former port first, so that links of earlier messages lead to the page again.
  const port = await (given === undefined && before
    ? listen(server, Number(before)).catch(() => listen(server, 0))
    : listen(server, given ?? 0));
  const address = `http://127.0.0.1:${port}`;
  api = createOperateApi({ address, projectUrl: target.url, headers: target.headers, operator: target.operator });
  await keep(`${address}/operate/`);
  const url = api.link();
  // Signals are handled before the link is printed: its reader may end this process at once.
  const ended = new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, resolve);
    whenNpmEnds(() => resolve(undefined));
  });
  say(context, { url }, () => [url, `The operator's page of ${target.url}, for one browser; ctrl-C ends it.`]);
  await ended;
  server.close();
  server.closeAllConnections();
  return 0;
}

async function answer(
  api: OperateApi | undefined,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  if (await api?.handle(request, response)) return;
  const pathname = urlOf(request)?.pathname ?? '';
  if (/^\/operate(\/|$)/.test(pathname) && (await servePage(pathname, request, response))) return;
  reply(response, 404, { message: "The operator's page is below /operate/." });
}

/** Resolves to the port. */
function listen(server: http.Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', ({ message }) => reject(new CommandError(`Port ${port} cannot be taken: ${message}.`)));
    server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}
