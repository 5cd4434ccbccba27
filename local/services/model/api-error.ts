/** An error answered in OpenAI's shape; `param` names the field at fault. */
export class ApiError extends Error {
  readonly status: 400 | 401 | 404 | 409;
  readonly param: string | null;
  readonly code: string | null;

  constructor(status: 400 | 401 | 404 | 409, message: string, param: string | null = null, code: string | null = null) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.param = param;
    this.code = code;
  }

  /** Returns the body of the answer. */
  toBody(): { error: { message: string; type: string; param: string | null; code: string | null } } {
    return { error: { message: this.message, type: 'invalid_request_error', param: this.param, code: this.code } };
  }
}
