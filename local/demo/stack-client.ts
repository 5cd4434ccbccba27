import { projectClient } from '../../supabase/functions/_services/project-client.ts';
import type { Stack } from '../platform/stack.ts';

/** Returns the Data API and Storage of a stack, with the rights of an application's server. */
export function stackClient({ apiUrl, secretKey }: Stack): ReturnType<typeof projectClient> {
  return projectClient({ SUPABASE_URL: apiUrl, SUPABASE_SECRET_KEYS: JSON.stringify({ default: secretKey }) });
}
