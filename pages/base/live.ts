// Watches the progress of rows, over supabase-js, in the name of whoever is signed in.
import { createClient, type SupabaseClient } from '@supabase/supabase-js';
import { type Progress, type ProgressError, watchRow } from '../../packages/client/index.ts';
import { type Session, session } from './session.ts';

const clients = new WeakMap<Session, SupabaseClient>();

/** The client of a session, whose token may be renewed meanwhile. */
function clientOf(given: Session): SupabaseClient {
  const client =
    clients.get(given) ?? createClient(given.url, given.key, { accessToken: async () => given.token || null });
  clients.set(given, client);
  return client;
}

/** Calls `onChange` with each state of a row's stages until the returned function is called. */
export function watchProgress(
  pipeline: string,
  key: string,
  onChange: (progress: Progress) => void,
  onError: (error: ProgressError) => void,
): () => void {
  if (!session.value) return () => {};
  return watchRow(clientOf(session.value), { pipeline, key }).subscribe(onChange, onError);
}
