// Errors in the form of Supabase Storage: the answer's HTTP status is 400 (500 for a fault of its own), the status
// that is meant stands in the body.
import pg from 'pg';

export class StorageError extends Error {
  readonly statusCode: number;
  readonly error: string;
  readonly code: string;

  constructor(statusCode: number, code: string, message: string, error = code) {
    super(message);
    this.statusCode = statusCode;
    this.code = code;
    this.error = error;
  }

  response(): Response {
    const { statusCode, error, message, code } = this;
    const status = statusCode === 500 ? 500 : 400;
    return Response.json({ statusCode: String(statusCode), error, message, code }, { status });
  }
}

export const noSuchBucket = () => new StorageError(404, 'NoSuchBucket', 'Bucket not found', 'Bucket not found');
export const noSuchObject = () => new StorageError(404, 'NoSuchKey', 'Object not found', 'not_found');
export const alreadyExists = () =>
  new StorageError(409, 'ResourceAlreadyExists', 'The resource already exists', 'Duplicate');
export const tooLarge = () =>
  new StorageError(413, 'EntityTooLarge', 'The object exceeded the maximum allowed size', 'Payload too large');
export const accessDenied = (message: string) => new StorageError(403, 'AccessDenied', message, 'Unauthorized');
export const invalidRequest = (message: string) => new StorageError(400, 'InvalidRequest', message);

/** Returns the error that the caller sees for anything thrown. */
export function toStorageError(error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  if (error instanceof pg.DatabaseError) {
    if (error.code === '42501') return accessDenied(error.message);
    if (error.code === '23505') return alreadyExists();
    if (error.code === '23503') return noSuchBucket();
  }
  return new StorageError(500, 'InternalError', error instanceof Error ? error.message : String(error));
}
