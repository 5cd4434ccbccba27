import { readBody } from '../_millrace/jobs/read-body.ts';
import { PermanentError } from '../_millrace/mod.ts';

/** How far an answer of a service is read, and how the service is called in errors. */
export interface Bound {
  maxBytes: number;
  label: string;
  /** The remedy for a larger answer, such as `name the column that has the links`. */
  remedy: string;
}

/**
 * Asks a service whose address is a setting, and reads its answer up to a size. A redirect is not followed: it could lead inside of
 * a network, and the token is for the service alone. Throws the PermanentErrors `redirected` and `too_large`, and what `fetch` throws.
 *
 * @example
 * ```ts
 * const { response, text } = await boundedFetch('https://api.example.com/v1/rows', { signal: context.signal }, {
 *   maxBytes: 1_000_000,
 *   label: 'The rows service',
 *   remedy: 'ask for fewer rows',
 * });
 * ```
 */
export async function boundedFetch(
  url: string | URL,
  init: RequestInit,
  { maxBytes, label, remedy }: Bound,
): Promise<{ response: Response; text: string }> {
  const response = await fetch(url, { ...init, redirect: 'manual' });
  if (response.status >= 300 && response.status < 400) {
    await response.body?.cancel();
    const { host } = new URL(url);
    throw new PermanentError(
      'redirected',
      `${label} at ${host} leads elsewhere, which is not followed: correct its address in the settings.`,
    );
  }
  const text = await readBody(response, maxBytes);
  if (text !== null) return { response, text };
  throw new PermanentError('too_large', `${label} answers with more than ${inWords(maxBytes)}: ${remedy}.`);
}

function inWords(bytes: number): string {
  return bytes < 1024 * 1024 ? `${Math.round(bytes / 1024)} kB` : `${Math.round(bytes / 1024 / 1024)} MB`;
}
