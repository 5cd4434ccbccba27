import { generateKeyPairSync } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { keepChildren } from '../../packages/test/kept-children.ts';
import { keepCheckpoints } from '../../packages/test/kept-turns.ts';
import { fetchFeed } from '../../supabase/functions/_articles/feeds/fetch-feed.ts';
import { tellSite } from '../../supabase/functions/_articles/site-hook.ts';
import { sourceReader } from '../../supabase/functions/_links/source-reader.ts';
import { createLog } from '../../supabase/functions/_millrace/log.ts';
import { jobService, PermanentError, traceHeaders } from '../../supabase/functions/_millrace/mod.ts';
import { askModel } from '../../supabase/functions/_millrace/model/model.ts';
import { systemResolve } from '../../supabase/functions/_millrace/public-hosts.ts';
import { runHandler } from '../../supabase/functions/_millrace/worker/run-handler.ts';
import { postEpisode } from '../../supabase/functions/_services/graphiti.ts';
import { transcribeNow } from '../../supabase/functions/_services/transcription.ts';
import { fetchWebFile } from '../../supabase/functions/_services/web-file.ts';
import { scrape } from '../../supabase/functions/leads-scrape/handler.ts';
import { makeContext } from '../support/context.ts';
import { startServer } from '../support/http-server.ts';

const traceId = '4bf92f35-77b3-4da6-a3ce-929d0e0e4736';
const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00000000000000ff-01';

test('the header is that of W3C’s Trace Context: the run’s trace, and the submission as the span', () => {
  expect(traceHeaders({ traceId, submission: 255 })).toEqual({ traceparent });
  expect(traceHeaders({ traceId, submission: 255 }).traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  for (const given of [
    {},
    { traceId },
    { submission: 1 },
    { traceId: 'trace', submission: 1 },
    { traceId, submission: 0 },
  ]) {
    expect(traceHeaders(given)).toEqual({});
  }
});

test('every request to a service says which run asks: submitting, asking after a job, a model, a transcriber, a graph', async () => {
  const server = await startServer(() => ({ status: 503 }));
  const settings = ['CARRIER', 'LLM', 'DEEPGRAM', 'GRAPHITI'].map((name) => [`${name}_URL`, server.url]);
  const env = { ...Object.fromEntries(settings), LLM_MODEL: 'm', LLM_AUTH_TOKEN: 'k', DEEPGRAM_API_KEY: 'k' };
  const { context } = makeContext(env, { traceId, submission: 255 });
  const carrier = jobService({ name: 'carrier' });
  const episode = { groupId: 'g', name: 'n', content: 'c', timestamp: '2026-11-01T12:00:00Z', sourceDescription: 's' };
  const asked = [
    carrier.submit({}, context, 'key'),
    carrier.poll('job_1', { env, signal: context.signal, traceId, submission: 255 }),
    askModel(
      { name: 'q', schema: z.object({ a: z.string() }), prompt: { label: 'p-1', instructions: 'x' }, input: 'y' },
      context,
    ),
    transcribeNow('https://files.example.com/1.mp3', context),
    postEpisode(episode, context),
  ];
  await Promise.allSettled(asked);
  expect(server.received).toHaveLength(asked.length);
  for (const { path, headers } of server.received)
    expect({ path, trace: headers.traceparent }).toEqual({ path, trace: traceparent });
});

test('every request for a source, a file of the web and a notice to the site says which run asks', async () => {
  const server = await startServer(({ path }) =>
    path.startsWith('/token') ? { json: { access_token: 't' } } : { status: 503 },
  );
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const account = {
    client_email: 'reader@project.test',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    token_uri: `${server.url}/token`,
  };
  const env = {
    SHEETS_API_URL: server.url,
    GOOGLE_SERVICE_ACCOUNT: JSON.stringify(account),
    NOTION_API_URL: server.url,
    NOTION_TOKEN: 'n',
    SITE_HOOK_URL: server.url,
    SITE_HOOK_SECRET: `whsec_${'a'.repeat(32)}`,
  };
  const { context } = makeContext(env, { traceId, submission: 255 });
  const { signal } = context;
  const hosts = new Set([new URL(server.url).host]);
  const source = { id: 's', column_name: null, cursor: null };
  const sheet = {
    ...source,
    kind: 'sheet' as const,
    address: 'https://docs.google.com/spreadsheets/d/abcdefghijklmnopqrst/edit',
  };
  const notion = {
    ...source,
    kind: 'notion' as const,
    address: 'https://www.notion.so/0123456789abcdef0123456789abcdef',
  };
  await Promise.allSettled([
    sourceReader(sheet, context)(null),
    sourceReader(notion, context)(null),
    fetchFeed(
      new URL(server.url),
      {},
      { allowed: hosts, resolve: systemResolve, signal, timeoutMs: 5000, traced: context },
    ),
    fetchWebFile(server.url, {
      accept: '*/*',
      maxBytes: 1000,
      timeoutMs: 5000,
      signal,
      allowed: { hosts, setting: 'ALLOW' },
      traced: context,
    }),
    tellSite({ id: 'm', type: 'published', data: {} }, context),
  ]);
  expect(server.received.map(({ path }) => path.split('?')[0]).sort()).toEqual([
    '/',
    '/',
    '/',
    '/token',
    expect.stringContaining('/v1/'),
    expect.stringContaining('/v4/spreadsheets/'),
  ]);
  for (const { path, headers } of server.received)
    expect({ path, trace: headers.traceparent }).toEqual({ path, trace: traceparent });
});

test('a failed attempt, and what a handler writes itself, are lines of JSON with run, trace, entity and attempt', async () => {
  const lines: Record<string, unknown>[] = [];
  const keep = (line: string) => void lines.push(JSON.parse(line));
  const spies = (['log', 'warn', 'error'] as const).map((name) => vi.spyOn(console, name).mockImplementation(keep));
  try {
    await runHandler({
      stage: {
        ...scrape,
        settings: [],
        input: z.unknown() as never,
        handler: (_, { log }) => {
          log.info('looking', { pages: 3 });
          throw new PermanentError('no_site', 'It has no site.', undefined, 'Its answer was 404.');
        },
      },
      item: {
        attempt: 9,
        token: 't',
        run: 7,
        trace_id: traceId,
        version: 1,
        entity_id: 'lead-1',
        entity: {},
        needs: {},
        retry_count: 0,
        submission: 9,
        stage_run: 9,
        isolated: false,
      },
      limits: { batch_size: 1, timeout_ms: 10_000, result_limit_bytes: 1000 },
      env: {},
      callbackUrl: 'http://callback.test',
      controller: new AbortController(),
      checkpoints: keepCheckpoints(),
      children: keepChildren(),
    });
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  const about = { pipeline: 'leads', stage: 'scrape', run: 7, trace: traceId, entity: 'lead-1', attempt: 9 };
  expect(lines).toEqual([
    { level: 'info', message: 'looking', ...about, pages: 3 },
    {
      level: 'warn',
      message: 'an attempt failed',
      ...about,
      code: 'no_site',
      error: 'Its answer was 404.',
      permanent: true,
    },
  ]);
});

test('a line stays one line of JSON, whatever an error holds', () => {
  const spy = vi.spyOn(console, 'error').mockImplementation(() => {});
  createLog({ entity: 'a\nb' }).error('x\u2028y"', { error: '\u0000\r\n' });
  const [[line]] = spy.mock.calls as [[string]];
  spy.mockRestore();
  expect(line).not.toMatch(/[\n\r]/);
  expect(JSON.parse(line)).toEqual({ level: 'error', message: 'x\u2028y"', entity: 'a\nb', error: '\u0000\r\n' });
});
