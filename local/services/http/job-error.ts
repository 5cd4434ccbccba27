/** Why a job failed, and whether trying again is pointless. */
const permanentByCode = {
  dns_not_found: true,
  dns_unavailable: false,
  connection_refused: true,
  connection_lost: false,
  tls_error: true,
  timeout: false,
  forbidden: true,
  not_found: true,
  rate_limited: false,
  captcha: false,
  removed: true,
  server_error: false,
  http_error: true,
  no_content: true,
  blocked_address: true,
  invalid_url: true,
  robots_disallowed: true,
  too_large: true,
  unsupported_type: true,
  damaged_content: true,
  unreadable_page: true,
  unexpected_error: true,
  damaged_document: true,
  encrypted_document: true,
  no_such_page: true,
  too_many_redirects: true,
} as const;

export type JobErrorCode = keyof typeof permanentByCode;

/** A fetch or a job that failed; `retryAfterMs` is what the site asked for, where it asked. */
export class JobError extends Error {
  readonly code: JobErrorCode;
  readonly permanent: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(code: JobErrorCode, message: string, retryAfterMs?: number) {
    super(message);
    this.name = 'JobError';
    this.code = code;
    this.permanent = permanentByCode[code];
    this.retryAfterMs = retryAfterMs;
  }
}

const codeByNetworkError: Record<string, JobErrorCode> = {
  ENOTFOUND: 'dns_not_found',
  ENODATA: 'dns_not_found',
  EAI_AGAIN: 'dns_unavailable',
  ECONNREFUSED: 'connection_refused',
  ETIMEDOUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  EPROTO: 'tls_error',
  ECONNRESET: 'connection_lost',
  ECONNABORTED: 'connection_lost',
  EPIPE: 'connection_lost',
  EHOSTUNREACH: 'connection_lost',
  ENETUNREACH: 'connection_lost',
  ENETDOWN: 'connection_lost',
  EADDRNOTAVAIL: 'connection_lost',
  UND_ERR_SOCKET: 'connection_lost',
  UND_ERR_CLOSED: 'connection_lost',
  UND_ERR_DESTROYED: 'connection_lost',
  UND_ERR_ABORTED: 'connection_lost',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'connection_lost',
  UND_ERR_HEADERS_OVERFLOW: 'http_error',
  // A packed body that ends too early.
  Z_BUF_ERROR: 'connection_lost',
  Z_DATA_ERROR: 'damaged_content',
};
const messages: Partial<Record<JobErrorCode, string>> = {
  dns_not_found: 'the host name does not exist; check its spelling',
  dns_unavailable: 'the host name could not be looked up just now',
  connection_refused: 'the server refuses connections at this address',
  connection_lost: 'the connection broke before all had arrived',
  damaged_content: 'the answer is not packed as its header says (Content-Encoding)',
  http_error: 'the server does not answer as HTTP has it',
  tls_error: "the server's certificate or TLS settings cannot be trusted",
  timeout: 'it did not arrive in time',
};

/**
 * Turns whatever a job threw into a JobError that names the host or the URL. An error that no fetch throws is `unexpected_error`
 * and permanent: the same input fails the same way again.
 */
export function toJobError(error: unknown, url: URL): JobError {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof JobError) return cause;
    const code = networkCode(cause);
    if (code) return new JobError(code, `${url.host}: ${messages[code]}`);
    if (cause.message === 'bad port') {
      return new JobError('invalid_url', `${url.href}: port ${url.port} belongs to a protocol other than HTTP`);
    }
  }
  return unexpectedError(error, url.href);
}

/** Returns the error for what nobody foresaw, with its name and message. `where` is what was worked on. */
export function unexpectedError(error: unknown, where: string): JobError {
  const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new JobError('unexpected_error', `${where}: the service failed on it (${said.slice(0, 300)})`);
}

function networkCode(error: Error & { code?: unknown }): JobErrorCode | undefined {
  if (error.name === 'TimeoutError') return 'timeout';
  // The job was ended, because the service stops or its time is over.
  if (error.name === 'AbortError') return 'connection_lost';
  const code = typeof error.code === 'string' ? error.code : '';
  if (/CERT|SIGNATURE|^ERR_(TLS|SSL)/.test(code)) return 'tls_error';
  if (/^HPE_/.test(code)) return 'http_error';
  return codeByNetworkError[code];
}
