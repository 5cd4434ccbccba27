// A listing as Storage gives it: folder by folder, though objects have but names.
import type { StoredObject } from './object-rows.ts';

export interface ListRequest {
  prefix?: string;
  search?: string;
  limit?: number;
  offset?: number;
  sortBy?: { column?: string; order?: string };
}

const sortColumns = ['name', 'created_at', 'updated_at', 'last_accessed_at'] as const;

/** Returns the folder that a request means: empty, or ending with a slash. */
export function folderOf({ prefix = '' }: ListRequest): string {
  return prefix && !prefix.endsWith('/') ? `${prefix}/` : prefix;
}

/** Returns the entries right in the folder: its objects, and one with nulls for each folder in it. */
export function listFolder(objects: StoredObject[], request: ListRequest): object[] {
  const folder = folderOf(request);
  const search = (request.search ?? '').toLowerCase();
  const found = new Map<string, ReturnType<typeof describe> | ReturnType<typeof emptyEntry>>();
  for (const object of objects) {
    const [first = '', ...deeper] = object.name.slice(folder.length).split('/');
    if (!first.toLowerCase().startsWith(search)) continue;
    found.set(first, deeper.length === 0 ? describe(object, first) : emptyEntry(first));
  }
  const column = sortColumns.find((name) => name === request.sortBy?.column) ?? 'name';
  const key = (entry: { [column: string]: unknown }) => {
    const value = entry[column];
    return value instanceof Date ? value.toISOString() : String(value ?? '');
  };
  const order = request.sortBy?.order === 'desc' ? -1 : 1;
  const entries = [...found.values()].sort((a, b) => (key(a) < key(b) ? -order : key(a) > key(b) ? order : 0));
  const { offset = 0, limit = 100 } = request;
  return entries.slice(offset, offset + limit);
}

function describe({ id, created_at, updated_at, last_accessed_at, metadata }: StoredObject, name: string) {
  return { name, id, updated_at, created_at, last_accessed_at, metadata };
}

function emptyEntry(name: string) {
  return { name, id: null, updated_at: null, created_at: null, last_accessed_at: null, metadata: null };
}
