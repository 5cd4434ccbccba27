import { importPKCS8, SignJWT } from 'jose';
import { z } from 'zod';
import { errorFromStatus } from '../../_millrace/errors.ts';
import { excerpt, MisconfiguredError, messageOf } from '../../_millrace/mod.ts';
import { boundedFetch } from '../bounded-fetch.ts';
import type { ServiceAccount } from './sheets-settings.ts';

const grantType = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const readOnly = 'https://www.googleapis.com/auth/spreadsheets.readonly';
/** A token that has less time left is not used for another request. */
const leastSeconds = 60;

const bound = {
  maxBytes: 64 * 1024,
  label: 'Google’s token service',
  remedy: 'correct token_uri in GOOGLE_SERVICE_ACCOUNT',
};

const answer = z.object({ access_token: z.string(), expires_in: z.number().default(3600) });

/** How Google is asked. */
interface Asking {
  signal: AbortSignal;
  headers: Record<string, string>;
}

const kept = new Map<string, { token: string; until: number }>();

/**
 * A token with which a service account may read sheets: signs a claim with its key and has it exchanged, unless the last one is
 * still good. Throws a MisconfiguredError for a key that is broken or refused, a RetriableError where nobody answers.
 */
export async function accessToken(account: ServiceAccount, asking: Asking): Promise<string> {
  const name = JSON.stringify(account);
  const last = kept.get(name);
  if (last && last.until > Date.now()) return last.token;
  const { access_token, expires_in } = await exchange(account, await signedClaim(account), asking);
  kept.set(name, { token: access_token, until: Date.now() + (expires_in - leastSeconds) * 1000 });
  return access_token;
}

/** Drops what was refused, so that the next request asks for another. */
export function forgetTokens(): void {
  kept.clear();
}

async function signedClaim({ client_email, private_key, private_key_id, token_uri }: ServiceAccount): Promise<string> {
  try {
    const key = await importPKCS8(private_key, 'RS256');
    return await new SignJWT({ scope: readOnly })
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(private_key_id ? { kid: private_key_id } : {}) })
      .setIssuer(client_email)
      .setAudience(token_uri)
      .setIssuedAt()
      .setExpirationTime('1h')
      .sign(key);
  } catch (error) {
    throw new MisconfiguredError(
      'The private key in GOOGLE_SERVICE_ACCOUNT cannot be used: set the key file anew.',
      messageOf(error),
    );
  }
}

async function exchange(account: ServiceAccount, assertion: string, asking: Asking) {
  const body = new URLSearchParams({ grant_type: grantType, assertion });
  const { response, text } = await boundedFetch(account.token_uri, { method: 'POST', body, ...asking }, bound);
  if (response.status === 400 || response.status === 401) {
    throw new MisconfiguredError(
      'Google refused the service account in GOOGLE_SERVICE_ACCOUNT: make a new key for it, and set that.',
      excerpt(text, 500),
    );
  }
  if (!response.ok)
    throw errorFromStatus(response.status, response.headers, 'Google’s token service', excerpt(text, 500));
  return answer.parse(JSON.parse(text));
}
