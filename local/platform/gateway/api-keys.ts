// Checks a caller's API key and token as Supabase's gateway does.
import type { IncomingHttpHeaders } from 'node:http';
import { createLocalJWKSet, type JWTHeaderParameters, type JWTPayload, jwtVerify } from 'jose';
import { type Keys, userTokenKeySet } from '../keys.ts';

export interface KeyCheck {
  /** The headers to hand on, with an Authorization that PostgREST understands; or why the call is refused. */
  authorize(headers: IncomingHttpHeaders, query: URLSearchParams): Promise<IncomingHttpHeaders | { refusal: string }>;
  /** The claims of the caller's token; undefined when it shows none or a wrong one. */
  claims(headers: IncomingHttpHeaders): Promise<JWTPayload | undefined>;
}

/** Checks the API keys and tokens of one stack. */
export function createKeyCheck(keys: Keys): KeyCheck {
  const userKeys = createLocalJWKSet(userTokenKeySet(keys));
  const legacyKey = new TextEncoder().encode(keys.jwtSecret);
  const tokens = new Map([
    [keys.publishableKey, keys.anonKey],
    [keys.secretKey, keys.serviceRoleKey],
    [keys.anonKey, keys.anonKey],
    [keys.serviceRoleKey, keys.serviceRoleKey],
  ]);

  const bearer = (headers: IncomingHttpHeaders) => /^bearer\s+(.+)$/i.exec(headers.authorization ?? '')?.[1];

  return {
    async authorize(headers, query) {
      const apiKey = headers.apikey?.toString() ?? query.get('apikey');
      if (!apiKey) return { refusal: 'No API key found in request' };
      const ofKey = tokens.get(apiKey);
      if (!ofKey) return { refusal: 'Invalid API key' };
      // Clients send the API key as the bearer too where nobody is signed in.
      const shown = bearer(headers);
      const token = shown === undefined ? ofKey : (tokens.get(shown) ?? shown);
      return { ...headers, authorization: `Bearer ${token}` };
    },
    async claims(headers) {
      const shown = bearer(headers);
      if (!shown) return undefined;
      try {
        const key = (header: JWTHeaderParameters) => (header.alg === 'HS256' ? legacyKey : userKeys(header));
        return (await jwtVerify(shown, key, { algorithms: ['HS256', 'ES256'] })).payload;
      } catch {
        return undefined;
      }
    },
  };
}
