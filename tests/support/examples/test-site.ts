// A web site whose pages a test writes.
import http from 'node:http';
import type { AddressInfo } from 'node:net';

type Page = (request: http.IncomingMessage, response: http.ServerResponse) => void;

export interface TestSite {
  url: string;
  /** Serves text in paragraphs, or whatever a function answers, at the path given or one of its own; returns its URL. */
  add(content: string[] | Page, path?: string): string;
  stop(): Promise<void>;
}

/** Starts the site on a free port of the loopback interface. It has no robots.txt and no links between its pages. */
export async function startTestSite(): Promise<TestSite> {
  const pages = new Map<string, Page>();
  const server = http.createServer((request, response) => {
    const page = pages.get(request.url ?? '');
    if (page) page(request, response);
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    add(content, path = `/${pages.size + 1}/`) {
      pages.set(path, typeof content === 'function' ? content : (_, response) => sendHtml(response, content));
      return url + path;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Answers with a page of these paragraphs, the first of which is its title too. */
export function sendHtml(response: http.ServerResponse, paragraphs: string[]): void {
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
  const text = paragraphs.map((paragraph) => `<p>${paragraph}</p>`).join('');
  response.end(
    `<html><head><title>${paragraphs[0]}</title></head><body><h1>${paragraphs[0]}</h1>${text}</body></html>`,
  );
}
