import { type Env, PermanentError, UnavailableError } from '../_millrace/mod.ts';
import { projectClient, projectError, storageStatus } from './project-client.ts';

/** Where a file lies in Storage, and the permanent error where it does not. */
export interface StoragePlace {
  bucket: string;
  path: string;
  missing: {
    code: string;
    /** The remedy, as in "upload it there". */
    remedy: string;
  };
}

export interface FoundFile {
  bytes: number;
  /** Another one after every change of the file. */
  version: string;
}

/** A file whose first bytes have arrived. Call one of the two functions, or its connection stays open. */
export interface BegunFile {
  head: Uint8Array;
  /** The whole file. Throws a StageError, an UnavailableError when it was replaced meanwhile. */
  all(): Promise<Uint8Array<ArrayBuffer>>;
  /** Gives up the rest. */
  cancel(): Promise<void>;
}

/**
 * Looks a file up. Throws a StageError: the place's own when there is none.
 *
 * @example
 * ```ts
 * const place = { bucket: 'orders', path: '7.pdf', missing: { code: 'no_file', remedy: 'upload it there' } };
 * const { bytes: size, version } = await findFile(place, env);
 * ```
 */
export async function findFile(place: StoragePlace, env: Env): Promise<FoundFile> {
  const { data, error } = await projectClient(env).storage.from(place.bucket).info(place.path);
  if (error) throw fileError(error, place);
  return { bytes: data.size ?? 0, version: [data.etag, data.lastModified].join(' ') };
}

/**
 * Begins to fetch a file of `bytes` bytes, until it has `headBytes` of them or all. Throws a StageError.
 *
 * @example
 * ```ts
 * const place = { bucket: 'orders', path: '7.pdf', missing: { code: 'no_file', remedy: 'upload it there' } };
 * const file = await beginFile(place, await findFile(place, env), 1024, env);
 * if (file.head[0] === 0x25) await openPdf(await file.all());
 * else await file.cancel();
 * ```
 */
export async function beginFile(
  place: StoragePlace,
  { bytes: size }: FoundFile,
  headBytes: number,
  env: Env,
): Promise<BegunFile> {
  const { data, error } = await projectClient(env).storage.from(place.bucket).download(place.path).asStream();
  if (error) throw fileError(error, place);
  const reader = data.getReader();
  const chunks: Uint8Array[] = [];
  let fetched = 0;
  const next = async () => {
    const { value } = await reader.read().catch((cause: Error) => {
      throw projectError(0, cause, `Reading ${place.path}`);
    });
    fetched += value?.length ?? 0;
    return value;
  };
  while (fetched < Math.min(headBytes, size)) {
    const chunk = await next();
    if (!chunk) break;
    chunks.push(chunk);
  }
  return {
    head: join(chunks, Math.min(fetched, size)),
    async all() {
      // Without a second copy, which a large file leaves no room for.
      const bytes = join(chunks.splice(0), size);
      for (let at = fetched, chunk = await next(); chunk; at = fetched, chunk = await next()) {
        if (fetched <= size) bytes.set(chunk, at);
      }
      if (fetched !== size) throw new UnavailableError('file_changed', 'The file was replaced while it was read.');
      return bytes;
    },
    cancel: () => reader.cancel().catch(() => {}),
  };
}

/**
 * All bytes of a file that has been looked up. Throws a StageError.
 *
 * @example
 * ```ts
 * const place = { bucket: 'orders', path: '7.pdf', missing: { code: 'no_file', remedy: 'upload it there' } };
 * const content = await fetchFile(place, await findFile(place, env), env);
 * ```
 */
export async function fetchFile(place: StoragePlace, found: FoundFile, env: Env): Promise<Uint8Array<ArrayBuffer>> {
  return (await beginFile(place, found, 0, env)).all();
}

/**
 * Throws the PermanentError `file_too_large` where `bytes` is more than `most`; `remedy` is as in "split it".
 *
 * @example
 * ```ts
 * checkFileSize(bytes.length, 20_000_000, 'split it into parts');
 * ```
 */
export function checkFileSize(bytes: number, most: number, remedy: string): void {
  if (bytes <= most) return;
  throw new PermanentError(
    'file_too_large',
    `The file has ${megabytes(bytes)} MB, and at most ${megabytes(most)} MB can be read: ${remedy}.`,
  );
}

/**
 * A URL under which an outside service may fetch the file for the next `seconds`. Throws a StageError.
 *
 * @example
 * ```ts
 * const place = { bucket: 'orders', path: '7.pdf', missing: { code: 'no_file', remedy: 'upload it there' } };
 * const url = await signedUrl(place, env, 3600);
 * ```
 */
export async function signedUrl(place: StoragePlace, env: Env, seconds: number): Promise<string> {
  const { data, error } = await projectClient(env).storage.from(place.bucket).createSignedUrl(place.path, seconds);
  if (error) throw fileError(error, place);
  return data.signedUrl;
}

/**
 * Writes a file, in the place of one that is there. Throws a StageError.
 *
 * @example
 * ```ts
 * await uploadFile({ bucket: 'orders', path: '7.txt' }, new TextEncoder().encode('Packed.'), 'text/plain', env);
 * ```
 */
export async function uploadFile(
  { bucket, path }: Pick<StoragePlace, 'bucket' | 'path'>,
  bytes: Uint8Array<ArrayBuffer>,
  contentType: string,
  env: Env,
): Promise<void> {
  const body = new Blob([bytes], { type: contentType });
  const { error } = await projectClient(env).storage.from(bucket).upload(path, body, { contentType, upsert: true });
  if (error) throw projectError(storageStatus(error), error, `Writing ${path}`);
}

/**
 * Removes the files of a folder, up to a thousand; a folder that is not there is no error. Throws a StageError.
 *
 * @example
 * ```ts
 * await removeFolder('orders', '7.parts', env);
 * ```
 */
export async function removeFolder(bucket: string, folder: string, env: Env): Promise<void> {
  const files = projectClient(env).storage.from(bucket);
  const found = await files.list(folder, { limit: 1000 });
  if (found.error) throw projectError(storageStatus(found.error), found.error, `Listing ${folder}`);
  if (found.data.length === 0) return;
  const { error } = await files.remove(found.data.map(({ name }) => `${folder}/${name}`));
  if (error) throw projectError(storageStatus(error), error, `Removing the files of ${folder}`);
}

/**
 * Whether the path leads into that folder and nowhere else. It becomes part of a URL, so it has no character that a URL
 * reads as something else. The tables have the same rule: what these functions may read, the row's owner may not.
 *
 * @example
 * ```ts
 * if (!isInFolder('account-7', 'account-7/order.pdf')) throw new PermanentError('foreign_file', 'It is not your file.');
 * ```
 */
export function isInFolder(folder: string, path: string): boolean {
  const parts = path.split('/');
  return (
    parts[0] === folder &&
    parts.length > 1 &&
    /^[\w/!.*'() &$=@;:+,-]+$/.test(path) &&
    !parts.some((part) => /^\.{1,2}$/.test(part))
  );
}

function fileError(error: { message: string; status?: number; statusCode?: string }, place: StoragePlace): Error {
  const status = storageStatus(error);
  const { bucket, path, missing } = place;
  if (status !== 404) return projectError(status, error, `Reading ${path}`);
  return new PermanentError(missing.code, `There is no file ${path} in the bucket ${bucket}: ${missing.remedy}.`);
}

function join(chunks: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk.subarray(0, size - at), at);
    at = Math.min(size, at + chunk.length);
  }
  return bytes;
}

function megabytes(bytes: number): number {
  // Upwards, so that what is too large by little is not said to be as large as allowed.
  return Math.ceil((bytes / 1024 / 1024) * 10) / 10;
}
