// Errors in the form of Supabase Auth: one for clients that name the version of its interface, as supabase-js does, and the
// older one for those that name none.
const versionHeader = 'x-supabase-api-version';
const version = '2024-01-01';

export class AuthError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }

  response(request: Request): Response {
    const { status, code, message } = this;
    if ((request.headers.get(versionHeader) ?? '') < version)
      return Response.json({ code: status, error_code: code, msg: message }, { status });
    return Response.json({ code, message }, { status, headers: { [versionHeader]: version } });
  }
}

export const invalidCredentials = () => new AuthError(400, 'invalid_credentials', 'Invalid login credentials');
export const badToken = (message: string) => new AuthError(403, 'bad_jwt', message);
export const refusedRefresh = (code: string, why: string) => new AuthError(400, code, `Invalid Refresh Token: ${why}`);

/** Returns the error that the caller sees for anything thrown. */
export const toAuthError = (error: unknown) =>
  error instanceof AuthError
    ? error
    : new AuthError(500, 'unexpected_failure', error instanceof Error ? error.message : String(error));
