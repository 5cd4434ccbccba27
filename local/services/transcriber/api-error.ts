/** A refusal in the form of Deepgram's API. */
export class ApiError extends Error {
  constructor(
    readonly status: 400 | 401 | 404 | 413,
    readonly code: 'Bad Request' | 'INVALID_AUTH' | 'REMOTE_CONTENT_ERROR' | 'Not Found' | 'Payload Too Large',
    message: string,
  ) {
    super(message);
    this.name = 'ApiError';
  }

  /** Returns the body of the answer. */
  toBody(requestId: string): { err_code: string; err_msg: string; request_id: string } {
    return { err_code: this.code, err_msg: this.message, request_id: requestId };
  }
}
