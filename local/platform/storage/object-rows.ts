// Objects: rows of storage.objects, written together with the files they name.
import { createHash, randomUUID } from 'node:crypto';
import type { Session } from './caller.ts';
import type { Contents } from './contents.ts';
import type { Upload } from './read-upload.ts';
import { noSuchObject } from './storage-error.ts';

export interface StoredObject {
  id: string;
  bucket_id: string;
  name: string;
  version: string;
  created_at: Date;
  updated_at: Date;
  last_accessed_at: Date;
  metadata: { eTag: string; size: number; mimetype: string; cacheControl: string; lastModified: string };
  user_metadata: object | null;
}

export interface Place {
  bucket: string;
  name: string;
}

const columns = 'id, bucket_id, name, version, created_at, updated_at, last_accessed_at, metadata, user_metadata';

/** Throws when there is none that the session may see. */
export async function findObject({ query }: Session, { bucket, name }: Place): Promise<StoredObject> {
  const sql = `select ${columns} from storage.objects where bucket_id = $1 and name = $2`;
  const [object] = await query<StoredObject>(sql, [bucket, name]);
  if (!object) throw noSuchObject();
  return object;
}

/** Resolves to the objects in a folder and its subfolders; `folder` is empty or ends with a slash. */
export function objectsBelow({ query }: Session, bucket: string, folder: string): Promise<StoredObject[]> {
  const sql = `select ${columns} from storage.objects where bucket_id = $1 and starts_with(name, $2)`;
  return query<StoredObject>(sql, [bucket, folder]);
}

/**
 * Writes row and file of an object, as the session's caller. The row is the last word: a crash on the way leaves a
 * file that no row names, never a row without its file. Resolves to the id and the version that it takes the place of.
 */
export async function writeObject(
  session: Session,
  contents: Contents,
  place: Place,
  upload: Upload,
  options: { replace: boolean; owner: string | undefined },
): Promise<{ id: string; replaced?: string }> {
  const known = await lockPlace(session, place);
  const id = known?.id ?? randomUUID();
  const version = randomUUID();
  const { content, mimeType, cacheControl, userMetadata } = upload;
  const metadata = {
    eTag: `"${createHash('md5').update(content).digest('hex')}"`,
    size: content.length,
    mimetype: mimeType,
    cacheControl,
    lastModified: new Date().toISOString(),
    contentLength: content.length,
    httpStatusCode: 200,
  };
  const upsert = `on conflict (bucket_id, name) do update
    set version = excluded.version, metadata = excluded.metadata, user_metadata = excluded.user_metadata,
        owner = excluded.owner, owner_id = excluded.owner_id, updated_at = now(), last_accessed_at = now()`;
  const owner = options.owner ?? null;
  const ownerAsUuid = owner && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(owner) ? owner : null;
  await session.query(
    `insert into storage.objects (id, bucket_id, name, version, metadata, user_metadata, owner, owner_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8) ${options.replace ? upsert : ''}`,
    [id, place.bucket, place.name, version, metadata, userMetadata, ownerAsUuid, owner],
  );
  await contents.write(version, content);
  return known ? { id, replaced: known.version } : { id };
}

/** Moves an object. The caller must be allowed to update it. */
export async function moveObject(session: Session, from: Place, to: Place): Promise<StoredObject> {
  await findObject(session, from);
  const [moved] = await session.query<StoredObject>(
    `update storage.objects set bucket_id = $3, name = $4, updated_at = now()
     where bucket_id = $1 and name = $2 returning ${columns}`,
    [from.bucket, from.name, to.bucket, to.name],
  );
  if (!moved) throw noSuchObject();
  return moved;
}

/** Removes those objects of `names` that exist and that the caller may remove. Resolves to their rows; leaves the files. */
export async function deleteObjects({ query }: Session, bucket: string, names: string[]): Promise<StoredObject[]> {
  await query(`set local storage.allow_delete_query = 'true'`);
  return query<StoredObject>(
    `delete from storage.objects where bucket_id = $1 and name = any ($2) returning ${columns}`,
    [bucket, names],
  );
}

/** Holds back others who write the same place until the transaction ends. */
async function lockPlace(session: Session, { bucket, name }: Place) {
  await session.asAdmin();
  await session.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`${bucket}/${name}`]);
  const [known] = await session.query<{ id: string; version: string }>(
    'select id, version from storage.objects where bucket_id = $1 and name = $2 for update',
    [bucket, name],
  );
  await session.asCaller();
  return known;
}
