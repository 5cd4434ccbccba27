import type { z } from 'zod';
import { errorFromStatus, retryAfterMs } from '../../_millrace/errors.ts';
import {
  excerpt,
  MisconfiguredError,
  PermanentError,
  RetriableError,
  type Traced,
  traceHeaders,
} from '../../_millrace/mod.ts';
import { boundedFetch } from '../bounded-fetch.ts';
import { accessToken, forgetTokens } from './access-token.ts';
import type { sheetsSettings } from './sheets-settings.ts';

/** How sheets are reached. */
export interface SheetsAccess {
  settings: z.output<typeof sheetsSettings>;
  signal: AbortSignal;
  /** How long one request may take. */
  timeoutMs: number;
  /** For whom they are read: the stage's context. */
  traced?: Traced;
}

const bound = {
  maxBytes: 30 * 1024 * 1024,
  label: 'Google Sheets',
  remedy: 'name the column that has the links',
};
/** Wait after one of Google's limits a minute, in milliseconds: its answers name no time. */
const minuteMs = 60_000;

/** Asks for a spreadsheet, one range of it and these fields; resolves to the answer's text. Throws a StageError that says what to do. */
export async function askForSheet(
  id: string,
  query: { fields: string; range?: string },
  { settings, signal, timeoutMs, traced = {} }: SheetsAccess,
): Promise<string> {
  const url = new URL(`${settings.SHEETS_API_URL}/v4/spreadsheets/${encodeURIComponent(id)}`);
  url.searchParams.set('fields', query.fields);
  if (query.range !== undefined) url.searchParams.set('ranges', query.range);
  const until = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const headers = traceHeaders(traced);
  const token = await accessToken(settings.GOOGLE_SERVICE_ACCOUNT, { signal: until, headers });
  const init = { headers: { ...headers, authorization: `Bearer ${token}` }, signal: until };
  const { response, text } = await boundedFetch(url, init, bound);
  if (!response.ok) throw sheetsError(response, text, settings.GOOGLE_SERVICE_ACCOUNT.client_email);
  return text;
}

function sheetsError({ status, headers }: Response, text: string, email: string): Error {
  const detail = excerpt(text, 500);
  if (status === 401) {
    forgetTokens();
    return new RetriableError(
      'token_refused',
      'Google no longer takes the token; another is asked for.',
      undefined,
      detail,
    );
  }
  if (status === 403 && /SERVICE_DISABLED|has not been used in project/.test(text)) {
    return new MisconfiguredError(
      'The Google Sheets API is off in the service account’s project: switch it on there.',
      detail,
    );
  }
  // Older limits answer 403, and name what was too much.
  const isLimit = /rate_?limit_?exceeded|quota_?exceeded|RESOURCE_EXHAUSTED|dailyLimitExceeded/i.test(text);
  if (status === 403 && isLimit) {
    const said = 'Google Sheets takes no more requests just now; it is asked again.';
    return new RetriableError('rate_limited', said, retryAfterMs(headers) ?? minuteMs, detail);
  }
  if (status === 400 && /not supported for this document|FAILED_PRECONDITION/.test(text)) {
    return new PermanentError(
      'no_google_sheet',
      'The file is no Google sheet, but for instance Excel in Drive: open it, choose File > Save as Google Sheets, and enter the ' +
        'address of the sheet that it makes.',
      undefined,
      detail,
    );
  }
  if (status === 403) {
    return new PermanentError(
      'not_shared',
      `The sheet is not shared with ${email}: share it, reading is enough.`,
      undefined,
      detail,
    );
  }
  if (status === 404) {
    return new PermanentError('not_found', 'There is no such sheet: correct the address.', undefined, detail);
  }
  if (/Unable to parse range/.test(text)) {
    return new PermanentError('no_tab', 'The tab was renamed or removed: correct the address.', undefined, detail);
  }
  const known = errorFromStatus(status, headers, 'Google Sheets', detail);
  if (status !== 429) return known;
  return new RetriableError(known.code, known.message, known.retryAfterMs ?? minuteMs, detail);
}
