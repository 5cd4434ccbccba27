import { type Keys, userTokenKeySet } from '../keys.ts';

/** Returns the environment of a function: what the platform sets, and the project's own settings. */
export function functionEnvironment(
  apiUrl: string,
  dbUrl: string,
  keys: Keys,
  settings: Record<string, string>,
): Record<string, string> {
  return {
    ...settings,
    SUPABASE_URL: apiUrl,
    SUPABASE_DB_URL: dbUrl,
    SUPABASE_PUBLISHABLE_KEYS: JSON.stringify({ default: keys.publishableKey }),
    SUPABASE_SECRET_KEYS: JSON.stringify({ default: keys.secretKey }),
    SUPABASE_JWKS: JSON.stringify(userTokenKeySet(keys)),
    SUPABASE_ANON_KEY: keys.anonKey,
    SUPABASE_SERVICE_ROLE_KEY: keys.serviceRoleKey,
  };
}
