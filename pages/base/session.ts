// The signed-in user and their project, with calls in their name. Key and token stay in the window until it is closed.
import { signal } from '@preact/signals';
import { Refusal } from './refusal.ts';
import { readStored, writeStored } from './stored.ts';

/** A project and somebody's way in. */
export interface Session {
  url: string;
  key: string;
  token: string;
  /** Gets new tokens, for a session that was opened with a password. */
  refresh: string | null;
}

export interface CallOptions {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

const kept = 'millrace.session';
// An answer after twenty seconds is a slow one; the Data API itself ends calls after eight.
const patienceMs = 30_000;

/** Null where nobody is signed in. */
export const session = signal<Session | null>(null);
/** Whether the project takes the token no longer; what is shown and typed stays until somebody signs in again. */
export const hasEnded = signal(false);

/** Signs in, so that a reload finds the session again. */
export function keepSession(given: Session): void {
  writeStored(() => sessionStorage, kept, given);
  session.value = given;
  hasEnded.value = false;
}

export function readKeptSession(): Session | null {
  const found = readStored<Session>(() => sessionStorage, kept);
  return found?.url && found.token ? found : null;
}

/** Forgets the session, here and in the window, and ends it at the project where a password has opened it. */
export async function endSession(): Promise<void> {
  const ended = session.value;
  writeStored(() => sessionStorage, kept, null);
  session.value = null;
  hasEnded.value = false;
  // Where the project does not hear of it, it ends by itself.
  if (ended?.refresh) await callProject('/auth/v1/logout?scope=local', { method: 'POST' }, ended).catch(() => {});
}

/** The claims of a token; throws a Refusal where it is none. */
export function claimsOf(token: string): Record<string, unknown> {
  try {
    const payload = token.split('.')[1] ?? '';
    const bytes = Uint8Array.from(atob(payload.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new Refusal(0, { message: 'This is no access token.', hint: 'It has three parts with dots between them.' });
  }
}

/** Sends a request; resolves to the answer's JSON. Throws a Refusal. */
export async function send(url: string, { method = 'GET', body, headers = {} }: CallOptions): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      signal: AbortSignal.timeout(patienceMs),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  } catch {
    throw new Refusal(0, { message: 'The project does not answer.', hint: 'Look at its address and your connection.' });
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(response.status, answer);
  return answer;
}

/** Calls the project in the name of a session, with a new token where the old one has run out. Throws a Refusal. */
export async function callProject(path: string, options: CallOptions = {}, given = session.value): Promise<unknown> {
  if (!given) throw new Refusal(401, { message: 'Nobody is signed in.' });
  const { token } = given;
  // A project may serve another schema first.
  const profile: Record<string, string> = path.startsWith('/rest/')
    ? { 'accept-profile': 'public', 'content-profile': 'public' }
    : {};
  const attempt = (bearer: string) =>
    send(given.url + path, {
      ...options,
      headers: {
        apikey: given.key,
        ...(bearer && { authorization: `Bearer ${bearer}` }),
        ...profile,
        ...options.headers,
      },
    });
  try {
    return await attempt(token);
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 401) throw error;
    if (given.token !== token || (await refresh(given))) return await attempt(given.token);
    if (session.value === given) hasEnded.value = true;
    throw error;
  }
}

let refreshing: Promise<boolean> | null = null;

/** Gets a new token; false when there is none. Calls at once share one. */
function refresh(given: Session): Promise<boolean> {
  refreshing ??= renew(given).finally(() => {
    refreshing = null;
  });
  return refreshing;
}

async function renew(given: Session): Promise<boolean> {
  if (!given.refresh) return false;
  const answer = (await send(`${given.url}/auth/v1/token?grant_type=refresh_token`, {
    method: 'POST',
    body: { refresh_token: given.refresh },
    headers: { apikey: given.key },
  }).catch((error) => {
    // Without an answer nothing was refused: the refresh token is kept for the next try.
    if (error instanceof Refusal && error.isSilence) throw error;
    return null;
  })) as { access_token?: string; refresh_token?: string } | null;
  Object.assign(given, { token: answer?.access_token ?? given.token, refresh: answer?.refresh_token ?? null });
  if (session.value === given) writeStored(() => sessionStorage, kept, given);
  return answer !== null;
}
