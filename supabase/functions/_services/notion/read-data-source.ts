import type { Client, PageObjectResponse, QueryDataSourceParameters, QueryDataSourceResponse } from '@notionhq/client';
import { isFullPage } from '@notionhq/client';
import { excerpt } from '../../_millrace/errors.ts';
import { PermanentError } from '../../_millrace/mod.ts';
import type { SourceRead } from '../text-links.ts';
import { findDataSource } from './find-data-source.ts';
import { askNotion, isStaleCursor } from './notion-client.ts';
import { pageLinks } from './page-links.ts';

/**
 * Where reading a data source left off. First a pass over all its pages, by the time they were created, which never changes; then
 * passes over those that were edited since the pass before began. A page that is edited meanwhile moves to the end of these, and a
 * mark that names it would pass over all in between: so each read asks anew for pages of the last one's minute and after.
 */
export interface NotionCursor {
  /** Id of the data source that the address led to. */
  dataSource: string;
  by: 'created_time' | 'last_edited_time';
  /** The present window: pages of this time and after; null for the first window of all. */
  from: string | null;
  /** Where the window ends: a minute in which more pages were edited than one read brings. Else it is open. */
  until?: string | null;
  /** Notion's mark within the window; null at its beginning. */
  mark: string | null;
  /** When the present pass began; null between passes. */
  began: string | null;
}

/** A data source to read. */
export interface NotionSource {
  /** The link of a database or data source, or its id. */
  address: string;
  /** The property that has the links; null for all. */
  column: string | null;
  cursor: NotionCursor | null;
}

const pageSize = 100;
/** Notion's times are to the minute, and its clock is not ours. */
const overlapMs = 5 * 60_000;
const minuteMs = 60_000;

/**
 * Reads the next hundred pages of a data source. Between passes the next begins: `more` is false where it has ended. Throws a
 * StageError that says what to do.
 *
 * @example
 * ```ts
 * let cursor: NotionCursor | null = null;
 * const read = await readDataSource(notion, { address: source.address, column: 'Link', cursor }, () => new Date());
 * ```
 */
export async function readDataSource(
  notion: Client,
  { address, column, cursor }: NotionSource,
  now: () => Date,
): Promise<SourceRead<NotionCursor>> {
  const at = cursor ?? (await firstCursor(notion, address));
  const pass = at.began === null ? { ...at, began: now().toISOString() } : at;
  try {
    const answer = await askNotion('the data source', () => notion.dataSources.query(question(pass)));
    const pages = answer.results.filter((row) => isFullPage(row));
    if (column !== null) refuseUnknown(pages, column);
    return { links: pages.flatMap((page) => pageLinks(page, column)), ...next(pass, answer, pages) };
  } catch (error) {
    if (pass.mark === null || !isStaleCursor(error)) throw error;
    // The window is read anew: what comes twice changes nothing.
    return { links: [], cursor: { ...pass, mark: null }, more: true };
  }
}

async function firstCursor(notion: Client, address: string): Promise<NotionCursor> {
  const dataSource = await findDataSource(notion, address);
  return { dataSource, by: 'created_time', from: null, mark: null, began: null };
}

function question({ dataSource, by, from, until, mark }: NotionCursor) {
  const bounds = [
    ...(from === null ? [] : [{ on_or_after: from }]),
    ...(until === undefined || until === null ? [] : [{ before: until }]),
  ];
  const filters = bounds.map((bound) =>
    by === 'created_time' ? { timestamp: by, created_time: bound } : { timestamp: by, last_edited_time: bound },
  );
  return {
    data_source_id: dataSource,
    page_size: pageSize,
    sorts: [{ timestamp: by, direction: 'ascending' as const }],
    ...(filters.length === 0 ? {} : { filter: filters.length === 1 ? filters[0] : { and: filters } }),
    ...(mark === null ? {} : { start_cursor: mark }),
  } as QueryDataSourceParameters;
}

/** Where the next read goes on: within the window, in the next window past Notion's limit of rows, or in a pass to come. */
function next(
  pass: NotionCursor,
  { next_cursor, has_more, ...answer }: QueryDataSourceResponse,
  pages: PageObjectResponse[],
): { cursor: NotionCursor; more: boolean } {
  const last = pages.at(-1)?.[pass.by];
  const isOpen = pass.until === undefined || pass.until === null;
  if (has_more && pass.by === 'last_edited_time' && isOpen && last !== undefined) {
    return { cursor: { ...pass, ...windowAfter(pass, last), mark: null }, more: true };
  }
  if (has_more) return { cursor: { ...pass, mark: next_cursor }, more: true };
  if (!isOpen) return { cursor: { ...pass, from: pass.until ?? null, until: null, mark: null }, more: true };
  if (isCutOff(answer) && last !== undefined) {
    if (last === pass.from) {
      throw new PermanentError(
        'too_many_at_once',
        `More pages were made at ${last} than Notion lists: move some to another data source, or edit them.`,
      );
    }
    return { cursor: { ...pass, from: last, mark: null }, more: true };
  }
  const from = new Date(Date.parse(pass.began as string) - overlapMs).toISOString();
  return { cursor: { ...pass, by: 'last_edited_time', from, mark: null, began: null }, more: false };
}

/** The window that begins with the minute of the last page; that minute alone where the present one begins with it too. */
function windowAfter({ from }: NotionCursor, last: string): Pick<NotionCursor, 'from' | 'until'> {
  const minute = new Date(Math.floor(Date.parse(last) / minuteMs) * minuteMs);
  if (from === null || minute.getTime() > Date.parse(from)) return { from: minute.toISOString(), until: null };
  return { from, until: new Date(minute.getTime() + minuteMs).toISOString() };
}

function isCutOff(answer: object): boolean {
  return (answer as { request_status?: { type?: string } }).request_status?.type === 'incomplete';
}

function refuseUnknown(pages: PageObjectResponse[], column: string): void {
  const [first] = pages;
  if (first === undefined || column in first.properties) return;
  const known = excerpt(Object.keys(first.properties).join(', '), 500);
  throw new PermanentError('no_column', `The data source has no property ${JSON.stringify(column)}: it has ${known}.`);
}
