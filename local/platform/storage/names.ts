// Checks names as Supabase Storage does: it takes those that are safe in S3, and refuses letters beyond ASCII.
import { StorageError } from './storage-error.ts';

const objectName = /^[\w/!.*'() &$=@;:+,?-]+$/;
const bucketName = /^[\w!.*'() &$=@;:+,?-]{1,100}$/;

export function checkObjectName(name: string): void {
  if (!objectName.test(name)) throw new StorageError(400, 'InvalidKey', `Invalid key: ${name}`);
}

export function checkBucketName(name: unknown): asserts name is string {
  if (typeof name === 'string' && bucketName.test(name) && name.trim() === name) return;
  throw new StorageError(400, 'InvalidBucketName', 'Bucket name invalid', 'Invalid Input');
}
