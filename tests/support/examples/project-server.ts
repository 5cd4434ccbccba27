import type { Env } from '../../../supabase/functions/_millrace/settings.ts';
import { type ReceivedRequest, startServer } from '../http-server.ts';

/** The objects that a tiny project holds: files of the bucket books by path, and rows of its two tables. */
export interface Project {
  files?: Record<string, Uint8Array | string>;
  books?: { id: string; account_id: string; source_path: string; media_type: string }[];
  pages?: { number: number; blend_result: unknown; label_result: unknown }[];
}

/** A tiny project that answers as Storage and Data API do, and the settings that lead to it. */
export async function startProject(project: Project) {
  const uploads = new Map<string, string>();
  const server = await startServer((request) => answer(request, project, uploads));
  const env: Env = { SUPABASE_URL: server.url, SUPABASE_SECRET_KEYS: '{"default":"secret"}' };
  return { ...server, env, uploads };
}

function answer(
  request: ReceivedRequest,
  { files = {}, books = [], pages = [] }: Project,
  uploads: Map<string, string>,
) {
  const url = new URL(request.path, 'http://project.test');
  const path = url.pathname.replace(/^\/storage\/v1\/object\/(?:info\/|sign\/)?books\//, '');
  const file = files[path];
  if (url.pathname.startsWith('/storage/v1/object/sign/'))
    return { json: { signedURL: `/object/sign/books/${path}?token=t` } };
  if (url.pathname.startsWith('/storage/v1/object/') && request.method === 'POST') {
    uploads.set(path, request.body);
    return { json: { Id: '1', Key: `books/${path}` } };
  }
  if (url.pathname.startsWith('/storage/v1/object/') && file === undefined) {
    return { status: 400, json: { statusCode: '404', error: 'not_found', message: 'Object not found' } };
  }
  if (url.pathname.startsWith('/storage/v1/object/info/')) return { json: { size: file?.length, etag: 'one' } };
  if (url.pathname.startsWith('/storage/v1/object/')) return { bytes: Buffer.from(file ?? '') };
  if (url.pathname === '/rest/v1/books') {
    const id = url.searchParams.get('id')?.slice('eq.'.length);
    return { json: books.filter((book) => book.id === id) };
  }
  const bound = (name: string) =>
    Number(
      url.searchParams
        .getAll('number')
        .find((text) => text.startsWith(name))
        ?.slice(name.length),
    );
  const [after, to] = [bound('gt.'), bound('lte.')];
  return {
    json: pages.filter(({ number }) => number > after && number <= to).slice(0, Number(url.searchParams.get('limit'))),
  };
}
