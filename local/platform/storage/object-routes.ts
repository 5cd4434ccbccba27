import type { Database, Session } from './caller.ts';
import type { Contents } from './contents.ts';
import { downloadRoutes } from './download-routes.ts';
import { lookupRoutes } from './lookup-routes.ts';
import type { AsCaller, StorageApp } from './server.ts';
import { signedUrlRoutes } from './signed-url-routes.ts';
import type { UrlSigner } from './signed-urls.ts';
import { writeRoutes } from './write-routes.ts';

/** What the routes of objects work with. */
export interface ObjectParts {
  asCaller: AsCaller;
  /** Work with all rights. */
  asAdmin<T>(work: (session: Session) => Promise<T>): Promise<T>;
  contents: Contents;
  signer: UrlSigner;
}

/** Adds the routes below /object. Those of any object stand last, since the first that fits a request takes it. */
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
