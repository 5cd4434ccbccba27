// The database's functions for operators. The server that opened the page calls them with a key that it keeps, or the page
// itself does, as whoever is signed in.
import { signal } from '@preact/signals';
import type { Overview } from '../../operators/answers.ts';
import { clockAheadMs } from '../base/format.tsx';
import { Refusal } from '../base/refusal.ts';
import { callProject, hasEnded, type Session, send } from '../base/session.ts';

/** Whether the server that this page comes from holds the key. */
export const isLocal = document.documentElement.hasAttribute('data-api');
/** The operator for whom the local API acts, where the API is open for this browser. */
export const operator = signal<string | null>(null);
/** The address of the project that the local API leads to. */
export const apiProject = signal('');
/** The person who acts, as the local API says, else the overview. */
export const you = signal<{ subject: string | null; role: string; payloads: boolean } | null>(null);

/** Exchanges what the address brings for a cookie, or finds the one there is. */
export async function openLocalApi(): Promise<void> {
  const token = new URLSearchParams(location.hash.slice(1)).get('enter');
  if (token) {
    history.replaceState(null, '', location.pathname);
    const body = { token };
    await send('api/enter', { method: 'POST', body });
  }
  const found = (await send('api/session', {})) as { operator?: string; project?: string };
  operator.value = found.operator ?? null;
  apiProject.value = found.project ?? '';
}

/** Forgets the cookie. */
export async function leaveLocalApi(): Promise<void> {
  await send('api/leave', { method: 'POST', body: {} });
  operator.value = null;
}

async function callApi(name: string, body: Record<string, unknown>): Promise<unknown> {
  if (operator.value === null) {
    return callProject(`/rest/v1/rpc/millrace_${name}`, { method: 'POST', body });
  }
  try {
    return await send(`api/millrace_${name}`, { method: 'POST', body });
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) hasEnded.value = true;
    throw error;
  }
}

/** Throws a Refusal where whoever signs in is no operator of the project. */
export async function admit(given: Session): Promise<void> {
  await callProject('/rest/v1/rpc/millrace_overview', { method: 'POST', body: { p_query: {} } }, given);
}

/** Asks what an operator may read, such as `runs`. */
export async function read<Answer>(name: string, query: Record<string, unknown> = {}): Promise<Answer> {
  return (await callApi(name, { p_query: query })) as Answer;
}

/** Asks for the overview, and learns who asks and what time it is there. */
export async function readOverview(): Promise<Overview> {
  const asked = Date.now();
  const overview = await read<Overview>('overview');
  clockAheadMs.value = Date.parse(overview.now) - (asked + Date.now()) / 2;
  if (JSON.stringify(you.value) !== JSON.stringify(overview.you)) you.value = overview.you;
  return overview;
}

/** Does a verb. */
export async function act<Answer = Record<string, unknown>>(request: Record<string, unknown>): Promise<Answer> {
  return (await callApi('act', { p_request: request })) as Answer;
}
