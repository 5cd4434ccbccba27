import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { MisconfiguredError } from '../errors.ts';
import { createLog } from '../log.ts';
import type { Env } from '../settings.ts';

/**
 * The number of the contract between this runtime and the engine: the functions that the runtime calls, their arguments
 * and answers, and the fields of a wake-up. Raise it with millrace.engine()'s where an older side would misunderstand a
 * newer one.
 */
export const CONTRACT = 2;
/** The header of each call by which the engine learns the contract. */
export const CONTRACT_HEADER = 'x-millrace-contract';
/** The header of each call by which the engine learns the caller's release. */
export const RELEASE_HEADER = 'x-millrace-release';
/** The headers of a wake-up by which a function learns which engine wakes it. */
const LEVEL_HEADER = 'x-millrace-level';
const CONTRACTS_HEADER = 'x-millrace-contracts';

/** Where the project is, and the keys that let one part of it call another. */
export interface Platform {
  url: string;
  secretKey: string;
  secretKeys: Record<string, string>;
  /** The service-role key beside secret keys, which lets its holder wake. The environment has it even when legacy keys are off. */
  legacyKey?: string | undefined;
  /** Lets its holder wake functions and do nothing else. Without it functions wake one another with the secret key. */
  wakeSecret?: string | undefined;
  /** The release of the function or the process, where its host names one. */
  release?: string | undefined;
}

/**
 * The caller of a function. The wake-up secret lets a `waker` wake and do nothing else; a secret key proves the
 * `project`.
 */
export type Caller = 'waker' | 'project';

/** The header that carries the wake-up secret. The secret key goes into `apikey`, which gateways check. */
const WAKE_HEADER = 'x-millrace-wake-secret';

/**
 * Reads the variables that Supabase sets in every function's environment: the secret keys, or without any the legacy
 * service-role key. Also reads MILLRACE_WAKE_SECRET, where the project has set it. Throws a MisconfiguredError that
 * names the missing variable.
 */
export function readPlatform(env: Env): Platform {
  const url = env.SUPABASE_URL?.replace(/\/+$/, '');
  if (!url) throw new MisconfiguredError('SUPABASE_URL is not set: set it to the project’s base URL.');
  const secretKeys = { ...namedKeys(env.SUPABASE_SECRET_KEYS) };
  if (env.SUPABASE_SECRET_KEY) secretKeys.default ??= env.SUPABASE_SECRET_KEY;
  const legacyKey = env.SUPABASE_SERVICE_ROLE_KEY;
  const secretKey = secretKeys.default ?? Object.values(secretKeys)[0] ?? legacyKey;
  if (!secretKey) {
    throw new MisconfiguredError(
      'Neither SUPABASE_SECRET_KEYS nor SUPABASE_SERVICE_ROLE_KEY is set: ' +
        'set SUPABASE_SECRET_KEYS to {"default":"sb_secret_…"} with a secret key of the project.',
    );
  }
  const wakeSecret = env.MILLRACE_WAKE_SECRET?.trim() || undefined;
  const release = releaseOf(env);
  const found = { url, secretKey, wakeSecret, ...(release && { release }) };
  if (Object.keys(secretKeys).length === 0) return { ...found, secretKeys: { legacy: secretKey } };
  return { ...found, secretKeys, ...(legacyKey ? { legacyKey } : {}) };
}

/** The number that Supabase gave the function's last deployment: DENO_DEPLOYMENT_ID is `{project}_{function}_{number}`. */
const releaseOf = ({ DENO_DEPLOYMENT_ID: id }: Env) => /_(\d+)$/.exec(id ?? '')?.[1];

/**
 * The secret by which the database wakes functions: MILLRACE_WAKE_SECRET where it is set, else an HMAC of the secret
 * key, so that a project need not choose one. The HMAC does not reveal the key.
 */
export const ownWakeSecret = ({ wakeSecret, secretKey }: Platform) => wakeSecret ?? wakeSecretOf(secretKey);

const wakeSecretOf = (key: string) => createHmac('sha256', key).update('millrace wake-up').digest('base64url');

/** Returns whether the request says that the database has sent it. It proves nothing of the sender. */
export const isFromEngine = (request: Request) => request.headers.has(LEVEL_HEADER) || request.headers.has(WAKE_HEADER);

/** Returns the headers with which one function wakes another. */
export function wakeHeaders({ wakeSecret, secretKey }: Platform): Record<string, string> {
  return wakeSecret ? { [WAKE_HEADER]: wakeSecret } : { apikey: secretKey };
}

/**
 * Tells who calls: the project, when `apikey` holds one of its secret keys; a waker, when the request shows the wake-up
 * secret, which is an HMAC of any of these keys unless MILLRACE_WAKE_SECRET is set; null for anybody else. A database that was
 * connected before the secret keys came wakes with the legacy key. The comparison takes equally long for every key, so that its
 * time tells nothing.
 */
export function callerOf(request: Request, { secretKeys, legacyKey, wakeSecret }: Platform): Caller | null {
  const shown = request.headers.get('apikey');
  if (isOneOf(shown, Object.values(secretKeys))) return 'project';
  const older = legacyKey ? [legacyKey] : [];
  if (isOneOf(shown, older)) return 'waker';
  const wakeSecrets = wakeSecret ? [wakeSecret] : [...Object.values(secretKeys), ...older].map(wakeSecretOf);
  if (isOneOf(request.headers.get(WAKE_HEADER), wakeSecrets)) return 'waker';
  return null;
}

/** Checks that a request shows one of the project's secret keys. Returns null when it does, else the answer to give. */
export function refuseStranger(request: Request, platform: Platform): Response | null {
  if (callerOf(request, platform) === 'project') return null;
  return unauthorized('Send a secret key of this project in the header "apikey".');
}

/**
 * Checks that a request may wake a function, and comes from an engine that speaks this runtime's contract. Returns null when
 * it does, else the answer to give.
 */
export function refuseWakeUp(request: Request, platform: Platform): Response | null {
  if (callerOf(request, platform)) return refuseOtherContract(request);
  const why = request.headers.has(WAKE_HEADER)
    ? `The wake-up secret in the header "${WAKE_HEADER}" is not that of this function`
    : `Wake it with the wake-up secret in the header "${WAKE_HEADER}", or with a secret key of this project in "apikey"`;
  return unauthorized(`${why}: POST to the function millrace/connect with a secret key, and the database learns both.`);
}

/**
 * Refuses an engine of another contract, with a remedy: doctor() shows the refusal, which says why the stage stands
 * still.
 */
function refuseOtherContract(request: Request): Response | null {
  const spoken = request.headers.get(CONTRACTS_HEADER)?.split(',').map(Number) ?? [];
  if (spoken.length === 0 || spoken.includes(CONTRACT)) return null;
  const remedy =
    CONTRACT > Math.max(...spoken)
      ? 'upgrade the database to the release of this function (supabase db push).'
      : 'deploy the functions of the database’s release (supabase functions deploy).';
  const message =
    `This function speaks contract ${CONTRACT}, and the engine that woke it ${spoken.join(' and ')} ` +
    `(level ${request.headers.get(LEVEL_HEADER)}): ${remedy}`;
  createLog({}).error(message);
  return Response.json({ error: { code: 'contract_refused', message } }, { status: 409 });
}

function unauthorized(message: string): Response {
  return Response.json({ error: { code: 'unauthorized', message } }, { status: 401 });
}

function isOneOf(shown: string | null, keys: string[]): boolean {
  if (!shown) return false;
  const digest = digestOf(shown);
  return keys.map((key) => timingSafeEqual(digest, digestOf(key))).includes(true);
}

/** Digests have one length, which timingSafeEqual() asks for. */
function digestOf(key: string): Uint8Array {
  return createHash('sha256').update(key).digest();
}

function namedKeys(json: string | undefined): Record<string, string> {
  if (!json) return {};
  try {
    const parsed: unknown = JSON.parse(json);
    if (parsed && typeof parsed === 'object' && !Array.isArray(parsed)) return parsed as Record<string, string>;
  } catch {
    // Reported below: a parse error would quote the key.
  }
  throw new MisconfiguredError('SUPABASE_SECRET_KEYS is no JSON object: set it to {"default":"sb_secret_…"}.');
}
