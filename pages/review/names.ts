// Names of codes, articles, people and values.
import { signal } from '@preact/signals';
import type { Session } from '../base/session.ts';
import { type Code, type Listed, rows } from './project.ts';

/** The codes that an article can have, in their order. */
export const codes = signal<ReadonlyMap<number, Code>>(new Map());

/** Asks the project for the codes. */
export async function readCodes(given?: Session): Promise<number> {
  const found = await rows<Code>('status_lookup', { select: 'code,name,description', order: 'sort_order' }, given);
  codes.value = new Map(found.map((row) => [row.code, row]));
  return found.length;
}

export const codeName = (code: number) => `${code} ${codes.value.get(code)?.name.replaceAll('_', ' ') ?? ''}`.trim();

export const titleOf = ({ title, url, id }: Pick<Listed, 'id' | 'title' | 'url'>) => title || url || `Article ${id}`;

export const person = (actor: string | null | undefined) => (actor ?? 'somebody').replace(/^user:/, '');

export const asText = (value: unknown): string => (Array.isArray(value) ? value.join(', ') : String(value ?? ''));
