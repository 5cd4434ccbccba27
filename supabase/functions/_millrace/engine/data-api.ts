import { PostgrestClient } from '@supabase/postgrest-js';
import { CONTRACT, CONTRACT_HEADER, type Platform, RELEASE_HEADER } from './platform.ts';

/**
 * The project's Data API with the rights of its secret key. supabase-js would bring sign-in, channels and Storage along, and
 * the platform embeds a package whole. Each call names the schema `public`, since a project may serve another one first.
 */
export function dataApi({ url, secretKey, release }: Platform): PostgrestClient {
  return new PostgrestClient(`${url}/rest/v1`, {
    schema: 'public',
    headers: {
      ...keyHeaders(secretKey),
      [CONTRACT_HEADER]: String(CONTRACT),
      // Leaves out characters that a header cannot carry.
      ...(release && { [RELEASE_HEADER]: release.replace(/[^!-~]|["\\]/g, '') }),
    },
  });
}

/** Returns the headers that show the secret key to one of the project's services. */
export function keyHeaders(secretKey: string): Record<string, string> {
  return { apikey: secretKey, Authorization: `Bearer ${secretKey}` };
}
