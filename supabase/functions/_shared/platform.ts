import { verifyAuth } from '@supabase/server/core';
import { MisconfiguredError } from './errors.ts';
import type { Env } from './settings.ts';

/** Where the project is, and the keys that let one part of it call another. */
export interface Platform {
  url: string;
  secretKey: string;
  secretKeys: Record<string, string>;
}

/**
 * Reads what Supabase puts into every function's environment: the secret keys, or only the legacy service-role key.
 * Throws a MisconfiguredError that names what is missing.
 */
export function readPlatform(env: Env): Platform {
  const url = env.SUPABASE_URL?.replace(/\/+$/, '');
  if (!url) throw new MisconfiguredError('SUPABASE_URL is not set: set it to the project’s base URL.');
  const secretKeys = { ...namedKeys(env.SUPABASE_SECRET_KEYS) };
  if (env.SUPABASE_SECRET_KEY) secretKeys.default ??= env.SUPABASE_SECRET_KEY;
  // A database that was set up before the new keys came still rings with the legacy one.
  if (env.SUPABASE_SERVICE_ROLE_KEY) secretKeys.legacy ??= env.SUPABASE_SERVICE_ROLE_KEY;
  const secretKey = secretKeys.default ?? Object.values(secretKeys)[0];
  if (!secretKey) {
    throw new MisconfiguredError(
      'Neither SUPABASE_SECRET_KEYS nor SUPABASE_SERVICE_ROLE_KEY is set: ' +
        'set SUPABASE_SECRET_KEYS to {"default":"sb_secret_…"} with a secret key of the project.',
    );
  }
  return { url, secretKey, secretKeys };
}

/**
 * Checks that a request shows one of the project's secret keys in its `apikey` header.
 * Returns null when it does, else the answer to give.
 */
export async function refuseStranger(request: Request, platform: Platform): Promise<Response | null> {
  const { error } = await verifyAuth(request, {
    auth: 'secret:*',
    env: { url: platform.url, secretKeys: platform.secretKeys, publishableKeys: {}, jwks: null },
  });
  if (!error) return null;
  return Response.json(
    { error: { code: 'unauthorized', message: 'Send a secret key of this project in the header "apikey".' } },
    { status: 401 },
  );
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
