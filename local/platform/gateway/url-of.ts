import type http from 'node:http';

/**
 * The address that a request asks for; null when it cannot be read. A path is never taken for a host, as `new URL(path, base)`
 * would take that of `//other/x`.
 *
 * @example urlOf({ url: '//other/x?a=1' } as http.IncomingMessage)?.pathname // '//other/x'
 */
export function urlOf({ url = '/' }: http.IncomingMessage): URL | null {
  const text = url.startsWith('/') ? `http://gateway${url}` : url;
  return URL.canParse(text) ? new URL(text) : null;
}
