import fs from 'node:fs/promises';
import type http from 'node:http';
import path from 'node:path';

const pagesFolder = path.join(import.meta.dirname, '..', '..', '..', 'pages');
const mediaTypes: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
};

/**
 * Answers with a file of a page in pages/, as any static host does; /review leads to /review/. Returns false where there is
 * no such file.
 */
export async function servePage(
  pathname: string,
  { method }: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<boolean> {
  const [, page = '', file] = /^\/([a-z0-9-]+)(?:\/([a-z0-9-]*(?:\.[a-z]+)?))?$/.exec(pathname) ?? [];
  if (page === '' || (method !== 'GET' && method !== 'HEAD')) return false;
  const name = file || 'index.html';
  const content = await fs.readFile(path.join(pagesFolder, page, name)).catch(() => undefined);
  if (!content) return false;
  if (file === undefined) {
    response.writeHead(308, { location: `/${page}/` }).end();
    return true;
  }
  const type = mediaTypes[path.extname(name)] ?? 'application/octet-stream';
  response.writeHead(200, { 'content-type': type, 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' });
  response.end(method === 'HEAD' ? undefined : content);
  return true;
}
