import fs from 'node:fs/promises';
import type http from 'node:http';
import path from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { pagesFolder } from '../places.ts';

const mediaTypes: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
};

/**
 * Answers with a file of a page in pages/dist/, as any static host does; /review leads to /review/. Returns false where there
 * is no such file. The operator's page learns that an API stands beside it.
 */
export async function servePage(
  pathname: string,
  { method }: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<boolean> {
  const [, page = '', file] = /^\/([a-z0-9-]+)(?:\/([\w-]*(?:\.[a-z]+)?))?$/.exec(pathname) ?? [];
  if (page === '' || (method !== 'GET' && method !== 'HEAD')) return false;
  const name = file || 'index.html';
  const content = await readPage(path.join(pagesFolder, page, name));
  if (!content) return false;
  if (file === undefined) {
    response.writeHead(308, { location: `/${page}/` }).end();
    return true;
  }
  response.writeHead(200, {
    'content-type': mediaTypes[path.extname(name)] ?? 'application/octet-stream',
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "frame-ancestors 'none'",
  });
  const isOperatorsPage = page === 'operate' && name === 'index.html';
  const shown = isOperatorsPage ? content.toString('utf8').replace('<html', '<html data-api') : content;
  response.end(method === 'HEAD' ? undefined : shown);
  return true;
}

/** Resolves to a file of a page; the packages have its code packed, which is a quarter as large. */
async function readPage(file: string): Promise<Buffer | undefined> {
  try {
    return await fs.readFile(file);
  } catch {
    const packed = await fs.readFile(`${file}.br`).catch(() => undefined);
    return packed && brotliDecompressSync(packed);
  }
}
