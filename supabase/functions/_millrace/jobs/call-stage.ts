import type { z } from 'zod';
import type { Platform } from '../engine/platform.ts';
import { excerpt, messageOf, UnavailableError } from '../errors.ts';
import { parseJson } from '../parse-json.ts';

const SHOWN_LENGTH = 300;

/**
 * Calls the function of a stage with the project's secret key, and returns its answer's status and body. Throws an
 * UnavailableError, `stage_unreachable`, for whatever is not an answer as `schema` has it: the gateway, a function that cannot
 * start, or one of another version may speak in the function's place.
 */
export async function callStage<S extends z.ZodType>(
  platform: Platform,
  name: string,
  { query = '', body, timeoutMs }: { query?: string; body: string; timeoutMs: number },
  schema: S,
): Promise<{ status: number; body: z.output<S> }> {
  const { status, text } = await post(platform, `${name}${query && `?${query}`}`, body, timeoutMs).catch((error) => {
    throw new UnavailableError('stage_unreachable', `Function ${name} cannot be reached: ${messageOf(error)}`);
  });
  const answer = schema.safeParse(parseJson(text));
  if (answer.success) return { status, body: answer.data };
  const said = excerpt(text, SHOWN_LENGTH);
  throw new UnavailableError('stage_unreachable', `Function ${name} answered ${status}: ${said}`);
}

async function post(platform: Platform, path: string, body: string, timeoutMs: number) {
  const answer = await fetch(`${platform.url}/functions/v1/${path}`, {
    method: 'POST',
    headers: { apikey: platform.secretKey, 'content-type': 'application/json' },
    body,
    // The key is for this project alone.
    redirect: 'manual',
    signal: AbortSignal.timeout(timeoutMs),
  });
  return { status: answer.status, text: await answer.text() };
}
