import type { PageObjectResponse } from '@notionhq/client';

/** A page as a JSON file has it: its properties by name, each a text, a link or the API's own form. */
export interface StoredPage {
  id: string;
  created_time: string;
  last_edited_time?: string;
  properties: Record<string, string | object | null>;
}

/** A data source as a JSON file has it. */
export interface StoredDataSource {
  name?: string;
  /** Where the file is a database: the id of its data source, a file of its own. */
  database?: string;
  shared?: boolean;
  pages: StoredPage[];
}

/** Returns a page in the API's own form. */
export function pageOf(
  { id, created_time, last_edited_time = created_time, properties }: StoredPage,
  dataSource: string,
) {
  const url = `https://www.notion.so/${id.replaceAll('-', '')}`;
  const full = Object.entries(properties).map(([name, value]) => [name, { id: name, ...propertyOf(value) }]);
  return {
    object: 'page',
    id,
    created_time,
    last_edited_time,
    parent: { type: 'data_source_id', data_source_id: dataSource },
    url,
    properties: Object.fromEntries(full),
  } as unknown as PageObjectResponse;
}

function propertyOf(value: string | object | null): object {
  if (value === null) return { type: 'url', url: null };
  if (typeof value === 'object') return value;
  if (/^https?:\/\/\S+$/.test(value)) return { type: 'url', url: value };
  return {
    type: 'rich_text',
    rich_text: [{ type: 'text', text: { content: value, link: null }, plain_text: value, href: null }],
  };
}
