import type { Env } from '../../../supabase/functions/_millrace/settings.ts';
import { startServer } from '../http-server.ts';

/**
 * A tiny project that answers as Storage and Data API do, with these files in its bucket documents and these drafts of
 * chunks; what is written there is kept. `env` has the settings that lead to it.
 */
export async function startDocumentProject(
  files: Record<string, Uint8Array | string>,
  drafts: Record<string, unknown>[] = [],
) {
  const texts = new Map<string, string>();
  const server = await startServer(({ method, path, body }) => {
    const { pathname, searchParams } = new URL(path, 'http://project.test');
    if (pathname === '/rest/v1/chunk_draft' && method === 'DELETE') {
      const left = drafts.filter((row) => [...searchParams].some(([name, value]) => value !== `eq.${row[name]}`));
      drafts.splice(0, drafts.length, ...left);
      return { status: 204 };
    }
    if (pathname === '/rest/v1/chunk_draft' && method === 'POST') {
      drafts.push(...JSON.parse(body));
      return { status: 201 };
    }
    const [, call, bucket, name = ''] = /^\/storage\/v1\/object\/(info\/|sign\/)?(\w+)\/(.*)$/.exec(pathname) ?? [];
    if (bucket === 'extracted_text' && method === 'POST') {
      // The text is one part of a form.
      texts.set(name, body);
      return { json: { Id: '1', Key: `${bucket}/${name}` } };
    }
    const file = bucket === 'documents' ? files[name] : undefined;
    if (file === undefined) {
      return { status: 400, json: { statusCode: '404', error: 'not_found', message: 'Object not found' } };
    }
    if (call === 'sign/') return { json: { signedURL: `/object/sign/documents/${name}?token=t` } };
    if (call === 'info/') return { json: { size: Buffer.from(file).length, etag: 'one' } };
    return { bytes: Buffer.from(file) };
  });
  const env: Env = { SUPABASE_URL: server.url, SUPABASE_SECRET_KEYS: '{"default":"secret"}' };
  return { ...server, env, texts, drafts };
}
