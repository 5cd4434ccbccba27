import { PermanentError, RetriableError, StageError } from '../_millrace/errors.ts';

const again = 'Once it is there again, write status queued.';
const patience = 'It is tried again by itself; write next_attempt_at to choose when.';

/** Remedies for a page that could not be fetched, by the scraper's code. */
const remedies: Record<string, string> = {
  not_found: `Correct raw_url, and write status new. ${again}`,
  removed: again,
  captcha: 'Nothing here gets round it: open the page yourself, or leave the link. It is tried again by itself.',
  forbidden: 'The site does not show it to programs: leave the link, or ask the site’s owner.',
  robots_disallowed: 'The site does not show it to programs: leave the link, or ask the site’s owner.',
  unsupported_type: 'Write the address of a page about it as raw_url, and status new.',
  too_large: 'Write the address of a smaller page about it as raw_url, and status new.',
  damaged_content: 'Once the site has mended it, write status queued.',
  unreadable_page: 'Write the address of another page about it as raw_url, and status new.',
  no_content: 'Once the page has some, write status queued.',
  too_many_redirects: 'Write the address where it is in the end as raw_url, and status new.',
  invalid_url: 'Correct raw_url, and write status new.',
  dns_not_found: 'Correct raw_url, and write status new.',
  blocked_address: 'Once it is listed, write status queued; or write a public address as raw_url, and status new.',
  connection_refused: `Correct raw_url, and write status new. ${again}`,
  tls_error: 'Once the site has mended it, write status queued.',
  http_error: `Correct raw_url, and write status new. ${again}`,
  dns_unavailable: patience,
  connection_lost: patience,
  rate_limited: patience,
  server_error: patience,
  timeout: patience,
};

/** The error with what to do about it, for whoever reads last_error. */
export function withRemedy(error: unknown): unknown {
  if (!(error instanceof StageError)) return error;
  const remedy = remedies[error.code];
  if (remedy === undefined) return error;
  const said = `${error.message.replace(/\.?$/, '.')} ${remedy}`;
  const Kind = error.permanent ? PermanentError : RetriableError;
  return new Kind(error.code, said, error.retryAfterMs, error.detail);
}
