import { createHash, timingSafeEqual } from 'node:crypto';

/** Whether an Authorization header carries the token. With no token set, everybody may come in. */
export function bearerMatches(header: string | undefined, token: string | undefined): boolean {
  if (!token) return true;
  const given = /^Bearer\s+(.+)$/i.exec(header ?? '')?.[1]?.trim() ?? '';
  return timingSafeEqual(digest(given), digest(token));
}

// Comparing digests keeps the lengths equal, which timingSafeEqual insists on.
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
