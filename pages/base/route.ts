// Where one is on a page, as the address says: #/runs?pipeline=books. A reload and the way back keep it.
import { signal } from '@preact/signals';

export interface Route {
  /** Empty where the address names none. */
  screen: string;
  /** The part of the address behind the screen, such as the number of a run. */
  of: string;
  query: URLSearchParams;
}

function readRoute(): Route {
  // Anything else behind the # is a link's.
  const [path = '', query = ''] = (/^#\/(.*)/s.exec(location.hash)?.[1] ?? '').split('?', 2);
  const [screen = '', ...of] = path.split('/');
  return { screen, of: decode(of.join('/')), query: new URLSearchParams(query) };
}

/** A part of an address that somebody may have made up. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = signal(readRoute());
window.addEventListener('hashchange', () => {
  route.value = readRoute();
});

export type Query = Record<string, string | number | boolean | null | undefined>;

/** The address of a screen; what is empty is left out. */
export function to(screen: string, of: string | number = '', query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#/${screen}${of === '' ? '' : `/${encodeURIComponent(of)}`}${search && `?${search}`}`;
}

export function go(address: string): void {
  location.hash = address;
}

/** Changes some of what the address asks for; the way back leads to how it was. */
export function ask(changes: Query): void {
  const { screen, of, query } = route.value;
  go(to(screen, of, { ...Object.fromEntries(query), ...changes }));
}

/** A number in an address; as it stands there where it is none, for the API to refuse by name. */
export const numberIn = (of: string): number | string => (/^\d+$/.test(of) ? Number(of) : of);
