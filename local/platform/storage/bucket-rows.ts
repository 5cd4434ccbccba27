// Buckets: rows of storage.buckets.
import type { Session } from './caller.ts';
import { checkBucketName } from './names.ts';
import { accessDenied, invalidRequest, noSuchBucket, StorageError } from './storage-error.ts';

export interface Bucket {
  id: string;
  name: string;
  owner: string;
  public: boolean;
  file_size_limit: number | null;
  allowed_mime_types: string[] | null;
  created_at: string;
  updated_at: string;
}

export interface BucketSettings {
  public?: boolean;
  /** Bytes, or such as `20MB`. */
  file_size_limit?: number | string | null;
  allowed_mime_types?: string[] | null;
}

const columns = `id, name, coalesce(owner::text, '') as owner, public, file_size_limit::float8, allowed_mime_types,
  created_at, updated_at, type`;

export function listBuckets({ query }: Session): Promise<Bucket[]> {
  return query<Bucket>(`select ${columns} from storage.buckets order by name`);
}

/** Throws when there is none that the session may see. */
export async function findBucket({ query }: Session, id: string): Promise<Bucket> {
  const [bucket] = await query<Bucket>(`select ${columns} from storage.buckets where id = $1`, [id]);
  if (!bucket) throw noSuchBucket();
  return bucket;
}

export async function createBucket({ query }: Session, id: unknown, settings: BucketSettings): Promise<void> {
  checkBucketName(id);
  await query(
    `insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types) values ($1, $1, $2, $3, $4)`,
    [id, settings.public ?? false, readSize(settings.file_size_limit) ?? null, settings.allowed_mime_types ?? null],
  );
}

/** Changes what is given, and leaves the rest. */
export async function updateBucket({ query }: Session, id: string, settings: BucketSettings): Promise<void> {
  const size = readSize(settings.file_size_limit);
  const types = settings.allowed_mime_types;
  const updated = await query(
    `update storage.buckets
     set public = coalesce($2, public),
         file_size_limit = case when $3 then $4 else file_size_limit end,
         allowed_mime_types = case when $5 then $6 else allowed_mime_types end,
         updated_at = now()
     where id = $1 returning id`,
    [id, settings.public, size !== undefined, size ?? null, types !== undefined, types ?? null],
  );
  if (updated.length === 0) throw noSuchBucket();
}

export async function deleteBucket(session: Session, id: string): Promise<void> {
  await findBucket(session, id);
  await session.asAdmin();
  const [object] = await session.query('select from storage.objects where bucket_id = $1 limit 1', [id]);
  if (object) throw new StorageError(409, 'ResourceNotEmpty', 'The bucket you tried to delete is not empty');
  await session.asCaller();
  await session.query(`set local storage.allow_delete_query = 'true'`);
  const deleted = await session.query('delete from storage.buckets where id = $1 returning id', [id]);
  if (deleted.length === 0) throw accessDenied('Access denied');
}

const units: Record<string, number> = { b: 1, kb: 1e3, mb: 1e6, gb: 1e9 };

function readSize(given: BucketSettings['file_size_limit']): number | null | undefined {
  if (typeof given !== 'string') return given;
  const [, count, unit = ''] = /^([0-9.]+)(gb|mb|kb|b)$/i.exec(given) ?? [];
  if (count === undefined) throw invalidRequest('Invalid file size format, hint: use 20GB / 20MB / 30KB / 3B');
  return Math.round(Number(count) * (units[unit.toLowerCase()] ?? 1));
}
