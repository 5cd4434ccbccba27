import type { Database } from './caller.ts';
import { downloadRoutes } from './download-routes.ts';
import { lookupRoutes } from './lookup-routes.ts';
import type { ObjectParts, StorageApp } from './route-parts.ts';
import { signedUrlRoutes } from './signed-url-routes.ts';
import { writeRoutes } from './write-routes.ts';

/** Adds the routes below /object. Routes for any object come last, since the first that matches takes a request. */
export function objectRoutes(
  app: StorageApp,
  { database, ...given }: Omit<ObjectParts, 'asAdmin'> & { database: Database },
): void {
  const parts: ObjectParts = { ...given, asAdmin: (work) => database.transaction(undefined, work) };
  signedUrlRoutes(app, parts);
  lookupRoutes(app, parts);
  writeRoutes(app, parts);
  downloadRoutes(app, parts);
}
