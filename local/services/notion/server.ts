// A stand-in for the part of Notion's API that reads data sources, for machines without it: it serves JSON files, each a data
// source by its id, to whoever shows the token.
import { type Context, Hono } from 'hono';
import { z } from 'zod';
import { tokenMatches } from '../http/auth-token.ts';
import { listen, type Service } from '../http/listen.ts';
import { readServed } from '../http/served-folder.ts';
import { queryBody, queryPages } from './query-pages.ts';
import type { StoredDataSource } from './stored-pages.ts';

export interface NotionOptions {
  /** Where the data sources lie: `ID.json`, the id without hyphens. */
  folder: string;
  token: string;
  port?: number;
  /** How many rows a query lists at most; Notion's 10,000 unless given. */
  most?: number;
  /** Answers with this status, as long as it says one, in place of what was asked for. */
  fail?: (path: string) => { status: number; headers?: Record<string, string> } | undefined;
}

const codes: Record<number, string> = {
  400: 'validation_error',
  401: 'unauthorized',
  403: 'restricted_resource',
  404: 'object_not_found',
  429: 'rate_limited',
  503: 'service_unavailable',
  529: 'service_overload',
};

/** Starts the stand-in of Notion on the loopback interface. Rejects when the port is taken. */
export async function startNotion(options: NotionOptions): Promise<Service> {
  const { folder, token, port, most = 10_000, fail = () => undefined } = options;
  const app = new Hono();
  app.use(async (c, next) => {
    const failure = fail(c.req.path);
    if (failure) return refuse(c, failure.status, 'It was told to fail.', failure.headers);
    if (!tokenMatches(c.req.header('authorization'), token)) return refuse(c, 401, 'API token is invalid.');
    if (!c.req.header('notion-version')) return refuse(c, 400, 'Notion-Version header should be defined.');
    return next();
  });
  app.get('/v1/databases/:id', (c) => {
    const stored = open(folder, c.req.param('id'));
    const isDatabase = stored?.shared !== false && stored?.database !== undefined;
    if (!stored || !isDatabase) return refuse(c, 404, `Could not find database with ID: ${c.req.param('id')}.`);
    const id = bare(stored.database as string);
    return c.json({ object: 'database', id: c.req.param('id'), data_sources: [{ id, name: stored.name ?? id }] });
  });
  app.post('/v1/data_sources/:id/query', async (c) => {
    const id = bare(c.req.param('id'));
    const stored = open(folder, id);
    if (!stored || stored.shared === false || stored.database !== undefined) {
      return refuse(c, 404, `Could not find data source with ID: ${c.req.param('id')}.`);
    }
    const query = queryBody.safeParse(await c.req.json().catch(() => ({})));
    if (!query.success) return refuse(c, 400, `body failed validation: ${z.prettifyError(query.error)}`);
    const answer = queryPages(stored, id, query.data, most);
    return answer === null ? refuse(c, 400, 'The start_cursor provided is invalid.') : c.json(answer);
  });
  app.notFound((c) => refuse(c, 400, 'Invalid request URL.'));
  return listen(app.fetch, port);
}

function open(folder: string, id: string): StoredDataSource | undefined {
  const file = readServed(folder, bare(id), ['json']);
  return file && (JSON.parse(file.text) as StoredDataSource);
}

function bare(id: string): string {
  return id.replaceAll('-', '').toLowerCase();
}

function refuse(c: Context, status: number, message: string, headers: Record<string, string> = {}): Response {
  const code = codes[status] ?? 'internal_server_error';
  return c.json({ object: 'error', status, code, message, request_id: 'local' }, status as 400, headers);
}
