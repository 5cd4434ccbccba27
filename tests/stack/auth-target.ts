// Where the contract of Supabase Auth is tested: on the stand-in, or on the project at AUTH_URL (such as
// http://127.0.0.1:54321) if it is given, with its AUTH_PUBLISHABLE_KEY and AUTH_SECRET_KEY, so that the two can be compared.
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startStack } from '../../local/platform/stack.ts';

export interface AuthTarget {
  url: string;
  publishableKey: string;
  secretKey: string;
  /** Resolves when the ten seconds are over in which a used refresh token is good once more. */
  passReuse(): Promise<void>;
  stop(): Promise<void>;
}

export async function startAuthTarget(): Promise<AuthTarget> {
  const { AUTH_URL: url, AUTH_PUBLISHABLE_KEY: publishableKey = '', AUTH_SECRET_KEY: secretKey = '' } = process.env;
  if (url) return { url, publishableKey, secretKey, passReuse: () => sleep(11_000), stop: async () => {} };
  const functionsDir = path.join(import.meta.dirname, 'functions');
  const stack = await startStack({ services: false, migrations: false, functionsDir, fsync: false });
  async function passReuse(): Promise<void> {
    const client = new pg.Client({ connectionString: stack.superDbUrl });
    await client.connect();
    await client.query(`update auth.refresh_tokens set updated_at = updated_at - interval '11 seconds'`);
    await client.end();
  }
  return { ...stack, url: stack.apiUrl, passReuse };
}
