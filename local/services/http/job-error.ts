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
};
const messages: Partial<Record<JobErrorCode, string>> = {
  dns_not_found: 'the host name does not exist; check its spelling',
  dns_unavailable: 'the host name could not be looked up just now',
  connection_refused: 'the server refuses connections at this address',
  connection_lost: 'the connection broke before all had arrived',
  tls_error: "the server's certificate or TLS settings cannot be trusted",
  timeout: 'it did not arrive in time',
};

/** Turns whatever a fetch threw into a JobError that names the host or the URL. */
export function toJobError(error: unknown, url: URL): JobError {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof JobError) return cause;
    const code = networkCode(cause);
    if (code) return new JobError(code, `${url.host}: ${messages[code]}`);
    if (cause.message === 'bad port') {
      return new JobError('invalid_url', `${url.href}: port ${url.port} belongs to a protocol other than HTTP`);
    }
  }
  return new JobError('connection_lost', `${url.host}: ${messages.connection_lost}`);
}

function networkCode(error: Error & { code?: unknown }): JobErrorCode | undefined {
  if (error.name === 'TimeoutError') return 'timeout';
  const code = typeof error.code === 'string' ? error.code : '';
  if (/CERT|SIGNATURE|^ERR_(TLS|SSL)/.test(code)) return 'tls_error';
  return codeByNetworkError[code];
}
