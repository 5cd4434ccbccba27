/** Why a page could not be had, and whether trying again is pointless. */
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
  server_error: false,
  http_error: true,
  no_content: true,
  blocked_address: true,
  invalid_url: true,
  robots_disallowed: true,
  too_large: true,
  unsupported_type: true,
  too_many_redirects: true,
} as const;

export type ScrapeErrorCode = keyof typeof permanentByCode;

/** A page or a job that failed; `retryAfterMs` is what the site asked for, where it asked. */
export class ScrapeError extends Error {
  readonly code: ScrapeErrorCode;
  readonly permanent: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(code: ScrapeErrorCode, message: string, retryAfterMs?: number) {
    super(message);
    this.name = 'ScrapeError';
    this.code = code;
    this.permanent = permanentByCode[code];
    this.retryAfterMs = retryAfterMs;
  }
}

const codeByNetworkError: Record<string, ScrapeErrorCode> = {
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
const messages: Partial<Record<ScrapeErrorCode, string>> = {
  dns_not_found: 'the host name does not exist; check its spelling',
  dns_unavailable: 'the host name could not be looked up just now',
  connection_refused: 'the server refuses connections at this address',
  connection_lost: 'the connection broke before the page was complete',
  tls_error: "the server's certificate or TLS settings cannot be trusted",
  timeout: 'the page did not arrive in time',
};

/** Turns whatever a fetch threw into a ScrapeError that names the page. */
export function toScrapeError(error: unknown, url: URL): ScrapeError {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof ScrapeError) return cause;
    const code = networkCode(cause);
    if (code) return new ScrapeError(code, `${url.host}: ${messages[code]}`);
    if (cause.message === 'bad port') {
      return new ScrapeError('invalid_url', `${url.href}: port ${url.port} belongs to a protocol other than HTTP`);
    }
  }
  return new ScrapeError('connection_lost', `${url.host}: ${messages.connection_lost}`);
}

function networkCode(error: Error & { code?: unknown }): ScrapeErrorCode | undefined {
  if (error.name === 'TimeoutError') return 'timeout';
  const code = typeof error.code === 'string' ? error.code : '';
  if (/CERT|SIGNATURE|^ERR_(TLS|SSL)/.test(code)) return 'tls_error';
  return codeByNetworkError[code];
}
