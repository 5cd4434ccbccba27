// The keys of one stack, in the forms hosted Supabase hands out: new API keys, the legacy JWTs, and signed-in users'
// tokens with an asymmetric signature.
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import { exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose';

const tenYears = '3650d';

export interface Keys {
  publishableKey: string;
  secretKey: string;
  /** Lets its holder wake functions and do nothing else. */
  wakeSecret: string;
  anonKey: string;
  serviceRoleKey: string;
  jwtSecret: string;
  /** Private key of the users' tokens. */
  userTokenKey: JWK;
  webhookSecret: string;
  scraperToken: string;
  ocrToken: string;
  transcriberToken: string;
  llmToken: string;
  notionToken: string;
}

/** Makes a new set of keys. */
export async function createKeys(): Promise<Keys> {
  const token = (bytes = 24) => randomBytes(bytes).toString('base64url');
  const jwtSecret = token(48);
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  return {
    publishableKey: `sb_publishable_${token()}`,
    secretKey: `sb_secret_${token()}`,
    wakeSecret: token(),
    anonKey: await legacyKey('anon', jwtSecret),
    serviceRoleKey: await legacyKey('service_role', jwtSecret),
    jwtSecret,
    userTokenKey: { ...(await exportJWK(privateKey)), alg: 'ES256', kid: token(9) },
    webhookSecret: `whsec_${randomBytes(24).toString('base64')}`,
    scraperToken: token(),
    ocrToken: token(),
    transcriberToken: token(),
    llmToken: token(),
    notionToken: token(),
  };
}

/** Reads the keys in `file`, and makes it where there is none. Adds keys that an older file lacks. */
export async function readOrCreateKeys(file: string): Promise<Keys> {
  const known = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : {};
  const keys = { ...(await createKeys()), ...known };
  fs.writeFileSync(file, JSON.stringify(keys), { mode: 0o600 });
  return keys;
}

function legacyKey(role: string, jwtSecret: string): Promise<string> {
  return new SignJWT({ iss: 'supabase', role })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setIssuedAt()
    .setExpirationTime(tenYears)
    .sign(new TextEncoder().encode(jwtSecret));
}

/** Returns the public key set that checks users' tokens, as in SUPABASE_JWKS. */
export function userTokenKeySet({ userTokenKey }: Keys): { keys: JWK[] } {
  const { d: _private, ...publicKey } = userTokenKey;
  return { keys: [publicKey] };
}

/** Every key that may have signed a JWT this stack accepts, for PostgREST and the gateway. Holds a secret. */
export function acceptedKeySet(keys: Keys): { keys: JWK[] } {
  const legacy = { kty: 'oct', alg: 'HS256', k: Buffer.from(keys.jwtSecret).toString('base64url') };
  return { keys: [...userTokenKeySet(keys).keys, legacy] };
}

/** Signs the token of a signed-in user: role `authenticated` and one hour of life unless `claims` say otherwise. */
export async function signUserToken(keys: Keys, claims: Record<string, unknown>): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT({ role: 'authenticated', aud: 'authenticated', iat: now, exp: now + 3600, ...claims })
    .setProtectedHeader({ alg: 'ES256', kid: keys.userTokenKey.kid as string, typ: 'JWT' })
    .sign(await importJWK(keys.userTokenKey, 'ES256'));
}
