import { createHash, timingSafeEqual } from 'node:crypto';

/** Returns whether an Authorization header carries the token after the scheme. With no token set, everybody may come in. */
export function tokenMatches(
  header: string | undefined,
  token: string | undefined,
  scheme: 'Bearer' | 'Token' = 'Bearer',
): boolean {
  if (!token) return true;
  const [, given = '', shown = ''] = /^(\S+)\s+(.+)$/.exec(header ?? '') ?? [];
  return given.toLowerCase() === scheme.toLowerCase() && timingSafeEqual(digest(shown.trim()), digest(token));
}

// Comparing digests keeps the lengths equal, which timingSafeEqual insists on.
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
