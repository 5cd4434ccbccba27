import type { Client } from '@notionhq/client';
import { excerpt, PermanentError } from '../../_millrace/mod.ts';
import { askNotion } from './notion-client.ts';

const hexId = /[0-9a-f]{32}$/i;

/** The id in an address of Notion's, or in an id with or without hyphens; null where there is none. */
export function notionId(address: string): string | null {
  // The end of the last part of the path that has one: a page's title stands before it and may end in such letters too, and
  // `v=` names a view.
  const [path = ''] = address.trim().replaceAll('-', '').split(/[?#]/);
  const ids = path.split('/').map((part) => hexId.exec(part)?.[0].toLowerCase());
  return ids.findLast((id) => id !== undefined) ?? null;
}

/**
 * The data source that an address leads to: itself (`collection://…` or its id), or the only one of a database. Throws a
 * PermanentError: `invalid_address`, `not_found`, `several_data_sources`.
 */
export async function findDataSource(notion: Client, address: string): Promise<string> {
  const id = notionId(address);
  if (id === null) {
    const shown = JSON.stringify(excerpt(address, 200));
    throw new PermanentError(
      'invalid_address',
      `${shown} is no address of Notion’s: copy the link of the database or data source.`,
    );
  }
  if (address.startsWith('collection://')) return id;
  const database = await askDatabase(notion, id);
  if (database === null) return id;
  const [first, ...others] = database;
  if (first === undefined) {
    throw new PermanentError(
      'not_found',
      'The database has no data source that the integration may read: share it in Notion.',
    );
  }
  if (others.length > 0) {
    const known = database.map(({ id: one, name }) => `collection://${one} (${name})`).join(', ');
    throw new PermanentError(
      'several_data_sources',
      `The database has several data sources: enter one as address: ${known}.`,
    );
  }
  return first.id;
}

/** The data sources of a database; null where there is no such database, since the id may be a data source’s. */
async function askDatabase(notion: Client, id: string): Promise<{ id: string; name: string }[] | null> {
  try {
    const database = await askNotion('the database', () => notion.databases.retrieve({ database_id: id }));
    return 'data_sources' in database ? database.data_sources : [];
  } catch (error) {
    const isNone = error instanceof PermanentError && ['not_found', 'request_rejected'].includes(error.code);
    if (isNone) return null;
    throw error;
  }
}
