// An upload's content and what is said about it, from a form as browsers send it or from a plain body.
import { invalidRequest, StorageError, tooLarge } from './storage-error.ts';

export interface Upload {
  content: Buffer;
  mimeType: string;
  cacheControl: string;
  userMetadata: object;
}

export interface UploadRules {
  /** Bytes. */
  sizeLimit: number;
  /** Such as `image/png` or `image/*`; null or empty for any. */
  mimeTypes: string[] | null;
}

/** Throws when the upload breaks the rules. */
export async function readUpload(request: Request, { sizeLimit, mimeTypes }: UploadRules): Promise<Upload> {
  const type = request.headers.get('content-type') ?? 'application/octet-stream';
  // The envelope of a form may take a little more than the file.
  const isForm = type.startsWith('multipart/form-data');
  const body = await readLimited(request, isForm ? sizeLimit + 2 ** 20 : sizeLimit);
  const upload = isForm ? await readForm(body, type) : readPlain(request.headers, body, type);
  if (upload.content.length > sizeLimit) throw tooLarge();
  if (mimeTypes?.length && !mimeTypes.some((allowed) => matches(upload.mimeType, allowed))) {
    const message = `mime type ${upload.mimeType} is not supported`;
    throw new StorageError(415, 'InvalidMimeType', message, 'invalid_mime_type');
  }
  return upload;
}

async function readLimited(request: Request, limit: number): Promise<Buffer> {
  if (Number(request.headers.get('content-length')) > limit) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > limit) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function readPlain(headers: Headers, content: Buffer, mimeType: string): Upload {
  const metadata = headers.get('x-metadata');
  return {
    content,
    mimeType,
    cacheControl: headers.get('cache-control') ?? 'no-cache',
    userMetadata: parseMetadata(metadata && Buffer.from(metadata, 'base64').toString()),
  };
}

async function readForm(body: Buffer, type: string): Promise<Upload> {
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
  const file = [...form.values()].find((value) => typeof value !== 'string');
  if (!file) throw invalidRequest('No content provided');
  const cacheTime = form.get('cacheControl');
  const metadata = form.get('metadata');
  return {
    content: Buffer.from(await file.arrayBuffer()),
    mimeType: file.type || 'application/octet-stream',
    cacheControl: cacheTime ? `max-age=${cacheTime}` : 'no-cache',
    userMetadata: parseMetadata(typeof metadata === 'string' ? metadata : null),
  };
}

function parseMetadata(text: string | null): object {
  try {
    return JSON.parse(text ?? '{}');
  } catch {
    return {};
  }
}

function matches(mimeType: string, allowed: string): boolean {
  const [type, detail] = mimeType.split('/');
  const [allowedType, allowedDetail] = allowed.split('/');
  return type === allowedType && (allowedDetail === '*' || allowedDetail === detail);
}
