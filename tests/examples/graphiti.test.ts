// The requests to a Graphiti server, against the contract of its own: server/graph_service of graphiti-core 0.29.
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { postChunk } from '../../supabase/functions/chunks-graphiti/handler.ts';
import { makeContext } from '../support/context.ts';
import { type Reply, refusedUrl, startServer } from '../support/http-server.ts';

// AddMessagesRequest and Message: `role` may be null but has no default. A uuid is refused here, because there the task that
// reads the queue ends at one that is not in the graph.
const message = z.strictObject({
  content: z.string(),
  name: z.string().default(''),
  role_type: z.enum(['user', 'assistant', 'system']),
  role: z.string().nullable(),
  timestamp: z.iso.datetime({ offset: true }).optional(),
  source_description: z.string().default(''),
});
const addMessages = z.strictObject({ group_id: z.string().regex(/^[a-zA-Z0-9_-]+$/), messages: z.array(message) });

const startGraphiti = (reply?: Reply) =>
  startServer(({ method, path, headers, body }) => {
    if (reply) return reply;
    if (path !== '/messages') return { status: 404, json: { detail: 'Not Found' } };
    if (method !== 'POST') return { status: 405, json: { detail: 'Method Not Allowed' } };
    const request = addMessages.safeParse(headers['content-type'] === 'application/json' ? JSON.parse(body) : body);
    if (!request.success) return { status: 422, json: { detail: request.error.issues } };
    return { status: 202, json: { message: 'Messages added to processing queue', success: true } };
  });

const document = {
  clerk_org_id: 'org_a-1',
  created_at: '2026-03-04T05:06:07.123456+00:00',
  source_path: 'org_a-1/file.pdf',
  source_name: 'Report',
};
const entity: Parameters<typeof postChunk>[0]['entity'] = {
  id: 'c1',
  document_id: 'd1',
  ordinal: 3,
  text: 'Ada met Bob.',
  heading: 'One > Two',
  graphiti_posted_at: null,
};

async function post(env: Record<string, string>, changes: Partial<typeof entity> = {}, rows: object[] = [document]) {
  const project = await startServer(() => ({ json: rows }));
  const { context } = makeContext({ SUPABASE_URL: project.url, SUPABASE_SECRET_KEYS: '{"default":"secret"}', ...env });
  return { project, result: postChunk({ entity: { ...entity, ...changes } }, context) };
}

describe('a chunk', () => {
  test('goes into its organisation’s graph as Graphiti takes it, and without a uuid', async () => {
    const graphiti = await startGraphiti();
    const { project, result } = await post({ GRAPHITI_URL: `${graphiti.url}/`, GRAPHITI_AUTH_TOKEN: 'token' });
    expect(await result).toEqual({ posted: true });
    expect(graphiti.received).toMatchObject([
      { method: 'POST', path: '/messages', headers: { authorization: 'Bearer token' } },
    ]);
    expect(JSON.parse(graphiti.received[0]?.body ?? '')).toEqual({
      group_id: 'org_a-1',
      messages: [
        {
          name: 'chunk c1',
          content: 'Ada met Bob.',
          role_type: 'system',
          role: null,
          timestamp: document.created_at,
          source_description: 'Report, part 3 (One > Two)',
        },
      ],
    });
    expect(project.received[0]?.path).toContain('/rest/v1/document?');
    expect(project.received[0]?.path).toContain('id=eq.d1');
  });

  test('is not posted where no server is set up, nor a second time', async () => {
    const without = await post({ GRAPHITI_URL: '' });
    expect(await without.result).toEqual({ posted: false });
    const graphiti = await startGraphiti();
    const again = await post({ GRAPHITI_URL: graphiti.url }, { graphiti_posted_at: '2026-03-04T05:06:07+00:00' });
    expect(await again.result).toEqual({ posted: true });
    expect([...without.project.received, ...again.project.received, ...graphiti.received]).toEqual([]);
  });

  test('of a document that has been deleted is not posted', async () => {
    const graphiti = await startGraphiti();
    const { result } = await post({ GRAPHITI_URL: graphiti.url }, {}, []);
    await expect(result).rejects.toMatchObject({ code: 'no_such_document', permanent: true });
    expect(graphiti.received).toEqual([]);
  });
});

describe('a server that does not take it', () => {
  test.each<[Reply, object]>([
    [{ status: 401 }, { code: 'misconfigured', permanent: false }],
    [{ status: 404 }, { code: 'misconfigured', permanent: false }],
    [
      { status: 422, json: { detail: [{ loc: ['body', 'messages', 0, 'role'], msg: 'Field required' }] } },
      { code: 'request_rejected', permanent: true, detail: expect.stringContaining('Field required') },
    ],
    [
      { status: 429, headers: { 'retry-after': '7' }, json: { detail: 'six a minute' } },
      {
        code: 'rate_limited',
        permanent: false,
        retryAfterMs: 7000,
        detail: expect.stringContaining('six a minute'),
      },
    ],
    [{ status: 503 }, { code: 'server_error', permanent: false }],
  ])('answers %j', async (reply, error) => {
    const graphiti = await startGraphiti(reply);
    const { result } = await post({ GRAPHITI_URL: graphiti.url });
    await expect(result).rejects.toMatchObject(error);
  });

  test('may be away for a while', async () => {
    const { result } = await post({ GRAPHITI_URL: await refusedUrl() });
    await expect(result).rejects.toMatchObject({ code: 'graphiti_unreachable', permanent: false });
  });

  test('may have been named wrongly', async () => {
    const { result } = await post({ GRAPHITI_URL: 'graphiti' });
    await expect(result).rejects.toMatchObject({
      code: 'misconfigured',
      message: expect.stringContaining('GRAPHITI_URL'),
    });
  });
});
