import { z } from 'zod';
import { pageOf, type StoredDataSource, type StoredPage } from './stored-pages.ts';

const time = z.enum(['created_time', 'last_edited_time']);
const moment = z.iso.datetime().or(z.iso.date());
const bound = z.strictObject({ on_or_after: moment }).or(z.strictObject({ before: moment }));
const condition = z.strictObject({
  timestamp: time,
  created_time: bound.optional(),
  last_edited_time: bound.optional(),
});

/** The body of a query, as far as this stand-in takes it; the real API takes more. */
export const queryBody = z.object({
  page_size: z.number().int().min(1).max(100).default(100),
  start_cursor: z.string().optional(),
  sorts: z
    .array(z.strictObject({ timestamp: time, direction: z.enum(['ascending', 'descending']) }))
    .max(1)
    .default([]),
  filter: condition.or(z.strictObject({ and: z.array(condition) })).optional(),
});

export type Query = z.output<typeof queryBody>;

/** Answers a query as Notion does: a page of rows, and no more than `most` rows for one filter and order. Null for a foreign cursor. */
export function queryPages(stored: StoredDataSource, dataSource: string, query: Query, most: number): object | null {
  const all = inOrder(matching(stored.pages, query), query);
  const start = query.start_cursor === undefined ? 0 : all.findIndex(({ id }) => id === query.start_cursor);
  if (start === -1) return null;
  const end = Math.min(start + query.page_size, most, all.length);
  const has_more = end < Math.min(most, all.length);
  const isCutOff = !has_more && all.length > most;
  return {
    object: 'list',
    type: 'page_or_data_source',
    page_or_data_source: {},
    results: all.slice(start, end).map((page) => pageOf(page, dataSource)),
    has_more,
    next_cursor: has_more ? all[end]?.id : null,
    ...(isCutOff ? { request_status: { type: 'incomplete', incomplete_reason: 'query_result_limit_reached' } } : {}),
  };
}

function matching(pages: StoredPage[], { filter }: Query): StoredPage[] {
  if (filter === undefined) return pages;
  const conditions = 'and' in filter ? filter.and : [filter];
  return pages.filter((page) => conditions.every((one) => holds(page, one)));
}

function holds(page: StoredPage, { timestamp, ...bounds }: z.output<typeof condition>): boolean {
  const bound = bounds[timestamp];
  const at = Date.parse(timeOf(page, timestamp));
  if (bound === undefined) return true;
  return 'before' in bound ? at < Date.parse(bound.before) : at >= Date.parse(bound.on_or_after);
}

function inOrder(pages: StoredPage[], { sorts: [sort] }: Query): StoredPage[] {
  if (sort === undefined) return pages;
  const sign = sort.direction === 'ascending' ? 1 : -1;
  return pages.toSorted(
    (a, b) => sign * (Date.parse(timeOf(a, sort.timestamp)) - Date.parse(timeOf(b, sort.timestamp))),
  );
}

function timeOf(page: StoredPage, timestamp: z.output<typeof time>): string {
  return timestamp === 'created_time' ? page.created_time : (page.last_edited_time ?? page.created_time);
}
