// Where the contract of Supabase Auth is tested: on the stand-in, or on the project at AUTH_URL (such as
// http://127.0.0.1:54321) if it is given, with its AUTH_PUBLISHABLE_KEY and AUTH_SECRET_KEY, so that the two can be compared.
import path from 'node:path';
import { startStack } from '../../local/platform/stack.ts';

export interface AuthTarget {
  url: string;
  publishableKey: string;
  secretKey: string;
  stop(): Promise<void>;
}

export async function startAuthTarget(): Promise<AuthTarget> {
  const { AUTH_URL: url, AUTH_PUBLISHABLE_KEY: publishableKey = '', AUTH_SECRET_KEY: secretKey = '' } = process.env;
  if (url) return { url, publishableKey, secretKey, stop: async () => {} };
  const functionsDir = path.join(import.meta.dirname, 'functions');
  const stack = await startStack({ services: false, migrations: false, functionsDir, fsync: false });
  return { ...stack, url: stack.apiUrl };
}
