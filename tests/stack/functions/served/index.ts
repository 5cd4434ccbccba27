import { createClient } from '@supabase/supabase-js';

const env = (name: string) => (globalThis as unknown as { process: NodeJS.Process }).process.env[name] as string;

// The other way to write a function; reads the database through the Data API with its own secret key.
Deno.serve(async () => {
  const { default: secretKey } = JSON.parse(env('SUPABASE_SECRET_KEYS'));
  const client = createClient(env('SUPABASE_URL'), secretKey);
  const { data, error } = await client.from('notes').select('text');
  return Response.json({ data, error });
});
