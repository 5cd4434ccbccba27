// The types that the routes of Storage share.
import type { Context, Hono } from 'hono';
import type { JWTPayload } from 'jose';
import type { Session } from './caller.ts';
import type { Contents } from './contents.ts';
import type { UrlSigner } from './signed-urls.ts';

export type StorageApp = Hono<{ Bindings: { claims: JWTPayload | undefined } }>;
type StorageContext = Context<{ Bindings: { claims: JWTPayload | undefined } }>;

/** Work in one transaction on behalf of a request's caller. */
export type AsCaller = <T>(c: StorageContext, work: (session: Session) => Promise<T>) => Promise<T>;

/** The parts that the routes of objects are made of. */
export interface ObjectParts {
  asCaller: AsCaller;
  /** Work with all rights. */
  asAdmin<T>(work: (session: Session) => Promise<T>): Promise<T>;
  contents: Contents;
  signer: UrlSigner;
}
