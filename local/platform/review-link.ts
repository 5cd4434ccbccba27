// The way to the review page of a stack, which has no Auth to sign in with.
import { randomUUID } from 'node:crypto';
import type { Stack } from './stack.ts';

const lifetimeSeconds = 12 * 3600;

/** The address of the review page that brings along the publishable key and a curator's token, good for twelve hours. */
export async function reviewLink(
  { apiUrl, publishableKey, signUserToken }: Pick<Stack, 'apiUrl' | 'publishableKey' | 'signUserToken'>,
  name: string,
): Promise<string> {
  const token = await signUserToken({
    sub: randomUUID(),
    exp: Math.floor(Date.now() / 1000) + lifetimeSeconds,
    app_metadata: { role: 'curator', name },
  });
  return `${apiUrl}/review/#${new URLSearchParams({ key: publishableKey, token })}`;
}
