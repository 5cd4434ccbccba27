import { APIResponseError, Client, LogLevel, RequestTimeoutError, UnknownHTTPResponseError } from '@notionhq/client';
import type { z } from 'zod';
import { classifyNetworkError, errorFromStatus } from '../../_millrace/errors.ts';
import {
  MisconfiguredError,
  messageOf,
  PermanentError,
  RetriableError,
  type Traced,
  traceHeaders,
} from '../../_millrace/mod.ts';
import { boundedFetch } from '../bounded-fetch.ts';
import type { notionSettings } from './notion-settings.ts';

const remedies: Record<string, string> = {
  object_not_found:
    'it was moved, or is not shared: open it in Notion, add the integration under Connections, or correct the address',
  restricted_resource: 'the integration may not read content: allow it to in its settings in Notion',
  validation_error: 'correct the address',
};

/** A hundred pages with long texts in each property have some megabytes. */
const bound = {
  maxBytes: 20 * 1024 * 1024,
  label: 'Notion',
  remedy: 'move long texts from the properties into the pages',
};

/** Notion as the settings know it, asked for `traced`. Requests end with `signal`; nothing is tried again, since a poll is. */
export function notionClient(
  settings: z.output<typeof notionSettings>,
  signal: AbortSignal,
  timeoutMs: number,
  traced: Traced = {},
): Client {
  const withTrace = (init: RequestInit) => ({
    ...init,
    headers: { ...(init.headers as Record<string, string>), ...traceHeaders(traced) },
  });
  return new Client({
    auth: settings.NOTION_TOKEN,
    baseUrl: settings.NOTION_API_URL,
    retry: false,
    timeoutMs,
    // Its errors are thrown as well, and the engine records those.
    logLevel: LogLevel.ERROR,
    logger: () => {},
    fetch: async (url, init) => {
      const asked = { ...withTrace(init as RequestInit), signal };
      const { response, text } = await boundedFetch(url, asked, bound);
      return new Response(text, { status: response.status, headers: response.headers });
    },
  });
}

/** Asks Notion something. Throws a StageError that says what to do; `what` names what is asked for. */
export async function askNotion<Answer>(what: string, question: () => Promise<Answer>): Promise<Answer> {
  try {
    return await question();
  } catch (error) {
    throw notionError(error, what);
  }
}

/** Whether Notion no longer knows where a read left off. */
export function isStaleCursor(error: unknown): boolean {
  return error instanceof PermanentError && /start_cursor/.test(error.detail ?? '');
}

function notionError(error: unknown, what: string): unknown {
  if (RequestTimeoutError.isRequestTimeoutError(error)) {
    return new RetriableError(
      'timeout',
      'Notion did not answer in time; it is asked again.',
      undefined,
      messageOf(error),
    );
  }
  if (!(error instanceof APIResponseError) && !(error instanceof UnknownHTTPResponseError)) {
    return classifyNetworkError(error) ?? error;
  }
  if (error.status === 401) {
    return new MisconfiguredError(
      'Notion refused NOTION_TOKEN: set that of an integration that is in use.',
      error.message,
    );
  }
  const known = errorFromStatus(error.status, new Headers(error.headers as Headers), 'Notion', error.message);
  if (!known.permanent) return known;
  const remedy = remedies[error.code] ?? 'read what it said with millrace.timeline()';
  return new PermanentError(known.code, `Notion does not give ${what}: ${remedy}.`, undefined, error.message);
}
