// Links to the pages of a stack for people without a password.
import { randomUUID } from 'node:crypto';
import type { Stack } from './stack.ts';

const lifetimeSeconds = 12 * 3600;

/** The part of a stack that links to its pages need. */
export type Linking = Pick<Stack, 'apiUrl' | 'publishableKey' | 'signUserToken'>;

/** Resolves to the address of a page that brings along the publishable key and a token of a new user, good for twelve hours. */
export async function pageLink(
  { apiUrl, publishableKey, signUserToken }: Linking,
  page: string,
  app_metadata: Record<string, string>,
): Promise<string> {
  const exp = Math.floor(Date.now() / 1000) + lifetimeSeconds;
  const token = await signUserToken({ sub: randomUUID(), exp, app_metadata });
  return `${apiUrl}/${page}/#${new URLSearchParams({ key: publishableKey, token })}`;
}
