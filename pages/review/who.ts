// The signed-in user, as their token says; row-level security decides what they may do.
import { claimsOf, type Session, session } from '../base/session.ts';

interface Claims {
  sub?: string;
  email?: string;
  app_metadata?: { role?: string; name?: string };
}

const claims = (given: Session | null): Claims => (given ? claimsOf(given.token) : {});

export const isCurator = () => claims(session.value).app_metadata?.role === 'curator';

export function nameOf(given: Session | null): string {
  const { app_metadata, email, sub } = claims(given);
  return app_metadata?.name ?? email ?? sub ?? '';
}
