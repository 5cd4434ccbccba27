// The part of Supabase Storage's HTTP interface that supabase-js uses for buckets and objects. Rows lie in the
// database under row-level security, contents in files.
import { Hono } from 'hono';
import type { JWTPayload } from 'jose';
import { bucketRoutes } from './bucket-routes.ts';
import { openDatabase } from './caller.ts';
import { openContents } from './contents.ts';
import { objectRoutes } from './object-routes.ts';
import type { AsCaller, StorageApp } from './route-parts.ts';
import { createUrlSigner } from './signed-urls.ts';
import { accessDenied, StorageError, toStorageError } from './storage-error.ts';

export interface StorageOptions {
  /** Where the contents of objects are kept. */
  folder: string;
  /** Logs in as supabase_storage_admin. */
  databaseUrl: string;
  /** Signs URLs. */
  secret: string;
}

export interface Storage {
  /** Answers a request below /storage/v1. `claims` are those of the caller's token, if it showed a valid one. */
  handle(request: Request, claims: JWTPayload | undefined): Response | Promise<Response>;
  stop(): Promise<void>;
}

/** Connects to the database at the first request. */
export function createStorage({ folder, databaseUrl, secret }: StorageOptions): Storage {
  const database = openDatabase(databaseUrl);
  const asCaller: AsCaller = (c, work) => {
    if (!c.env.claims) throw accessDenied('Invalid token');
    return database.transaction(c.env.claims, work);
  };
  const app: StorageApp = new Hono<{ Bindings: { claims: JWTPayload | undefined } }>().basePath('/storage/v1');
  bucketRoutes(app, asCaller);
  objectRoutes(app, { asCaller, database, contents: openContents(folder), signer: createUrlSigner(secret) });
  app.notFound(() => new StorageError(404, 'NotFound', 'Route not found').response());
  app.onError((error) => toStorageError(error).response());
  return {
    handle: (request, claims) => app.fetch(request, { claims }),
    stop: () => database.stop(),
  };
}
