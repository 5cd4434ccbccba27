import type { Env } from '../../../supabase/functions/_millrace/settings.ts';
import { startServer } from '../http-server.ts';

/** The rows that a tiny project has in its tables, by their names. */
export type ArticleTables = Record<string, Record<string, unknown>[]>;

/** A tiny project that answers as Data API and Storage do, the settings that lead to it, and what was uploaded, by path. */
export async function startArticleProject(tables: ArticleTables = {}) {
  const uploads = new Map<string, { type: string; bytes: number }>();
  const server = await startServer(({ method, path, headers, body }) => {
    const url = new URL(path, 'http://project.test');
    const file = /^\/storage\/v1\/object\/(.+)$/.exec(url.pathname)?.[1];
    if (file && method === 'POST') {
      uploads.set(file, { type: String(headers['content-type']), bytes: body.length });
      return { json: { Id: '1', Key: file } };
    }
    const table = /^\/rest\/v1\/(.+)$/.exec(url.pathname)?.[1] ?? '';
    const id = url.searchParams.get('id')?.slice('eq.'.length);
    const rows = (tables[table] ?? []).filter((row) => id === undefined || row.id === id);
    return { json: rows.slice(0, Number(url.searchParams.get('limit') ?? 1000)) };
  });
  const env: Env = { SUPABASE_URL: server.url, SUPABASE_SECRET_KEYS: '{"default":"secret"}' };
  return { ...server, env, uploads, tables };
}
