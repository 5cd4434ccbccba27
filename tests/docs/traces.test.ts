import fs from 'node:fs';
import path from 'node:path';
import protocol from '@opentelemetry/otlp-transformer/build/src/generated/root.js';
import { Hono } from 'hono';
import { expect, onTestFinished } from 'vitest';
import { listen } from '../../local/services/http/listen.ts';
import { databaseRpc } from '../../packages/test/database-rpc.ts';
import type { Rpc } from '../../supabase/functions/_millrace/engine/engine-client.ts';
import { answerMillrace } from '../../supabase/functions/_millrace/serve-millrace.ts';
import { traceHeaders } from '../../supabase/functions/_millrace/trace.ts';
import { answerTracesWakeUp } from '../../supabase/functions/_millrace/traces/send-traces.ts';
import type { Span } from '../../supabase/functions/_millrace/traces/write-spans.ts';
import { defineFamily, numbers, spawnAll, startFolders } from '../support/engine/children.ts';
import { inCountingSession } from '../support/engine/plan-rows.ts';
import { type Engine, type Row, test } from '../support/engine.ts';
import { completed, failed, resume, Worker, waiting } from '../support/worker.ts';
import { testPage } from './page.ts';

const open = testPage('traces');
const migration = fs.readFileSync(
  path.join(import.meta.dirname, '../../supabase/functions/_millrace/traces/traces.sql'),
  'utf8',
);

type Reply = { status: number; body?: string; headers?: Record<string, string> };

/** A collector that reads requests by the protocol's own definition and keeps the spans that it takes. */
class Collector {
  url = '';
  /** The spans of each request that was taken. */
  taken: Span[][] = [];
  headers: Headers[] = [];
  reply: (spans: Span[]) => Reply = () => ({ status: 200, body: '{"partialSuccess": {}}' });

  async start(): Promise<this> {
    const app = new Hono();
    app.post('/v1/traces', async (c) => {
      this.headers.push(c.req.raw.headers);
      const spans = spansOf(await c.req.json());
      const { status, body = '', headers } = this.reply(spans);
      if (status === 200) this.taken.push(spans);
      return c.body(body, status as 200, headers);
    });
    const server = await listen(app.fetch);
    onTestFinished(() => server.stop());
    this.url = server.url;
    return this;
  }

  get spans(): Span[] {
    return this.taken.flat();
  }
}

/** A message of the protocol, in code that was written from its definition. */
interface Message {
  fromObject(given: object): object;
  encode(message: object): { finish(): Uint8Array };
  decode(bytes: Uint8Array): object;
  toObject(message: object, options: object): object;
}
// The package's types leave out what the file exports.
const { ExportTraceServiceRequest } = (
  protocol as unknown as { opentelemetry: { proto: { collector: { trace: { v1: Record<string, Message> } } } } }
).opentelemetry.proto.collector.trace.v1;

/** Reads a request as protobuf's JSON: an unknown field, or a value of another type, is lost or refused on the way, and found. */
function spansOf(request: { resourceSpans: { scopeSpans: { spans: Span[] }[] }[] }): Span[] {
  const message = ExportTraceServiceRequest as Message;
  // OTLP writes ids in hex where protobuf's JSON has base64.
  const base64 = (_: string, value: unknown) =>
    typeof value === 'object' && value && 'spanId' in value
      ? Object.fromEntries(
          Object.entries(value).map(([key, own]) => [
            key,
            /^(trace|span|parentSpan)Id$/.test(key) ? Buffer.from(String(own), 'hex').toString('base64') : own,
          ]),
        )
      : value;
  const spans = request.resourceSpans.flatMap((resource) => resource.scopeSpans.flatMap((scope) => scope.spans));
  // Protobuf knows no empty list.
  if (spans.length === 0) return spans;
  const given = JSON.parse(JSON.stringify(request, base64));
  const decoded = message.decode(message.encode(message.fromObject(given)).finish());
  expect(message.toObject(decoded, { longs: String, bytes: String })).toEqual(given);
  for (const span of spans) {
    expect(span.traceId).toMatch(/^[0-9a-f]{32}$/);
    for (const id of [span.spanId, span.parentSpanId ?? '1'.repeat(16)]) expect(id).toMatch(/^[0-9a-f]{16}$/);
    expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
  }
  return spans;
}

const attribute = (span: Span | undefined, key: string) => {
  const found = span?.attributes.find((one) => one.key === key)?.value;
  return found && Object.values(found)[0];
};
const named = (spans: Span[], name: string) => spans.filter((span) => span.name === name);

class Site {
  readonly collector = new Collector();
  readonly env: Record<string, string> = { SUPABASE_URL: 'http://project.test', SUPABASE_SERVICE_ROLE_KEY: 'k' };
  /** Called with the name of each function before it is called. */
  before: (name: string) => void = () => {};

  constructor(readonly engine: Engine) {}

  async start(): Promise<this> {
    await this.engine.sql.query(migration);
    await this.collector.start();
    this.env.OTEL_EXPORTER_OTLP_ENDPOINT = this.collector.url;
    this.env.OTEL_EXPORTER_OTLP_HEADERS = 'api-key=secret%20of%20mine, x-team=ops';
    await this.engine.sql.query('select public.wake_traces()');
    return this;
  }

  /** Lets the function work once, a while later. */
  async send(after = '3 seconds'): Promise<void> {
    await this.engine.advance(after);
    const session = await this.engine.database.connect('service_role');
    const rpc: Rpc = async (name, args, signal) => {
      this.before(name);
      return databaseRpc(session)(name, args, signal);
    };
    const working: Promise<void>[] = [];
    const answer = answerTracesWakeUp(
      this.env,
      (work) => void working.push(work),
      () => rpc,
    );
    const headers = { apikey: 'k' };
    expect((await answer(new Request('http://project.test/traces', { method: 'POST', headers }))).status).toBe(202);
    await Promise.all(working);
    this.engine.database.giveBack(session);
  }

  /** Runs of the page's pipeline that have ended. */
  async end(count = 1): Promise<string[]> {
    const { engine } = this;
    const ids = await engine.rows<{ id: string }>(
      `insert into public.parcels (address) select 'street ' || n from generate_series(1, $1) n returning id`,
      [count],
    );
    await engine.sql.query(`select millrace.start('parcels', id) from unnest($1::text[]) id`, [
      ids.map(({ id }) => id),
    ]);
    const worker = await Worker.of(engine, 'weigh', 'parcels');
    for (let batch = await worker.take(count); batch.length > 0; batch = await worker.take(count)) {
      await engine.advance('1 second');
      await worker.complete(batch.map((item) => completed(item)));
    }
    return ids.map(({ id }) => id);
  }

  entities = () => named(this.collector.spans, 'parcels').map((span) => attribute(span, 'millrace.entity'));
  findings = () =>
    this.engine.rows<{ message: string }>(`select message from millrace.log where code ~ '^traces_' order by id`);
}

test('a request is read by the protocol’s own definition, so that a wrong one is found', () => {
  const span = { spanId: 'a'.repeat(16), traceId: 'b'.repeat(32), startTimeUnixNano: '1', endTimeUnixNano: '2' };
  const request = (more: object) =>
    ({ resourceSpans: [{ scopeSpans: [{ spans: [{ ...span, ...more }] }] }] }) as Parameters<typeof spansOf>[0];
  expect(spansOf(request({}))).toHaveLength(1);
  for (const more of [{ named: 'x' }, { name: 4 }, { kind: 'x' }, { links: [{ span: 'x' }] }, { endTimeUnixNano: '0' }])
    expect(() => spansOf(request(more))).toThrow();
});

test('a run, its stages, attempts and jobs are spans of one trace, with the model’s tokens', async ({ engine }) => {
  const page = await open(engine);
  const site = await new Site(engine).start();
  const traceparent = `00-${'0af7651916cd43dd8448eb211c80319c'}-b7ad6b7169203331-01`;
  await engine.sql.query(`select set_config('request.headers', $1, false)`, [JSON.stringify({ traceparent })]);
  await engine.sql.query(
    `with p as (insert into public.parcels (address) values ('street') returning id)
    select millrace.start('parcels', p.id::text) from p`,
  );
  const worker = await Worker.of(engine, 'weigh', 'parcels');
  const first = await worker.takeOne();
  await engine.advance('2 seconds');
  await worker.complete([failed(first, { message: 'slow scale' })]);
  await engine.advance('10 minutes');
  const second = await worker.takeOne();
  await worker.complete([waiting(second, 'job-7', 'scales')]);
  await engine.advance('5 seconds');
  const usage = { model: 'gpt-5', input_tokens: 12, output_tokens: 3, cost_usd: 1, cached_input_tokens: 4 };
  const end = { submission: second.submission, outcome: 'completed', service: 'scales', job_id: 'job-7', usage };
  const { items } = await resume(engine, [{ ...end, stage: 'weigh', trace_id: second.trace_id, result: { ok: true } }]);
  expect(items[0]?.verdict).toBe('accepted');
  await site.send();

  const { spans, headers } = site.collector;
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set(['0af7651916cd43dd8448eb211c80319c']));
  const [run] = named(spans, 'parcels');
  const [stage] = named(spans, 'weigh');
  const attempts = named(spans, 'weigh attempt');
  const [job] = named(spans, 'scales job');
  expect(spans).toHaveLength(5);
  expect(run?.parentSpanId).toBe('b7ad6b7169203331');
  expect(run?.links?.[0]?.spanId).toBe('b7ad6b7169203331');
  expect(stage?.parentSpanId).toBe(run?.spanId);
  expect(attempts.map(({ parentSpanId }) => parentSpanId)).toEqual([stage?.spanId, stage?.spanId]);
  expect(job?.parentSpanId).toBe(attempts[1]?.spanId);
  // Services know the attempt by this id.
  const header = traceHeaders({ traceId: first.trace_id, submission: first.submission }).traceparent;
  expect(header).toBe(`00-${run?.traceId}-${attempts[0]?.spanId}-01`);
  expect(attempts.map(({ status }) => status)).toEqual([{ code: 2, message: 'slow scale' }, {}]);
  expect(attempts[1]?.links?.map(({ spanId }) => spanId)).toEqual([attempts[0]?.spanId]);
  expect(attribute(attempts[1], 'gen_ai.request.model')).toBe('gpt-5');
  expect(attribute(attempts[1], 'gen_ai.usage.input_tokens')).toBe('12');
  expect(attribute(attempts[1], 'millrace.cost_usd')).toBe(1);
  expect(attribute(attempts[0], 'error.type')).toBe('timeout');
  expect(BigInt(job?.endTimeUnixNano ?? 0) - BigInt(job?.startTimeUnixNano ?? 0)).toBe(5_000_000_000n);
  expect([headers[0]?.get('api-key'), headers[0]?.get('x-team')]).toEqual(['secret of mine', 'ops']);
  expect(await page.run(engine, 'select pipeline, share')).toEqual([
    { pipeline: 'parcels', share: '1', sent_at: expect.any(Date), fault: null },
  ]);
  await site.send();
  expect(site.collector.taken).toHaveLength(1);
});

test('children hang below the attempt of their parent, which links to them', async ({ engine }) => {
  await open(engine);
  const site = await new Site(engine).start();
  await defineFamily(engine, { projection: 'none', filesProjection: 'none' });
  await engine.sql.query('select public.wake_traces()');
  await startFolders(engine);
  await spawnAll(engine, numbers(1, 3));
  const children = await Worker.of(engine, 'scan', 'files');
  await children.complete((await children.take()).map((item) => completed(item)));
  const blend = await Worker.of(engine, 'blend', 'files');
  await blend.complete((await blend.take()).map((item) => completed(item)));
  await engine.sweepAll();
  const publish = await Worker.of(engine, 'publish', 'folder');
  await publish.complete((await publish.take()).map((item) => completed(item)));
  await site.send();
  const files = named(site.collector.spans, 'files');
  const [split] = named(site.collector.spans, 'split attempt');
  expect(files.map(({ parentSpanId }) => parentSpanId)).toEqual(Array(3).fill(split?.spanId));
  expect(split?.links?.map(({ spanId }) => spanId).sort()).toEqual(files.map(({ spanId }) => spanId).sort());
});

test('a call that dies after the collector took the runs sends the same spans again', async ({ engine }) => {
  await open(engine);
  const site = await new Site(engine).start();
  await site.end(3);
  site.before = (name) => {
    if (name === 'note_traces') throw new Error('killed');
  };
  await site.send();
  site.before = () => {};
  await site.send('20 seconds');
  expect(site.collector.taken).toHaveLength(1);
  await site.send('1 minute');
  const [once, again] = site.collector.taken;
  expect(again).toEqual(once);
  await site.send('2 minutes');
  expect(site.collector.taken).toHaveLength(2);
});

test('a refusal keeps the runs and is named by doctor(), and a run that is refused for good is passed over', async ({
  engine,
}) => {
  const page = await open(engine);
  const site = await new Site(engine).start();
  const { collector } = site;
  const well = collector.reply;
  const ids = await site.end(5);
  const refusals: [Reply, string][] = [
    [{ status: 401, body: 'bad key' }, '2 minutes'],
    [{ status: 503, body: 'busy', headers: { 'retry-after': '300' } }, '11 minutes'],
  ];
  for (const [reply, after] of refusals) {
    collector.reply = () => reply;
    await site.send(after);
    await site.send('20 seconds');
    page.expectPromised((await site.findings()).at(-1)?.message);
  }
  expect(collector.headers).toHaveLength(2);
  const [finding] = await engine.rows(`select detail from millrace.doctor() where detail ~ 'traces of parcels'`);
  expect(finding?.detail).toContain('busy');

  // The collector refuses each request with this run.
  collector.reply = (spans) =>
    spans.some((span) => attribute(span, 'millrace.entity') === ids[3]) ? { status: 400, body: 'bad span' } : well([]);
  await site.send('11 minutes');
  expect(site.entities()).toEqual(ids.toSpliced(3, 1));
  page.expectPromised((await site.findings()).at(-1)?.message);

  // An address that refuses everything loses nothing.
  const [later] = await site.end();
  collector.reply = () => ({ status: 400 });
  await site.send('11 minutes');
  collector.reply = () => ({
    status: 200,
    body: '{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}',
  });
  await site.send('11 minutes');
  expect(site.entities().at(-1)).toBe(later);
  page.expectPromised((await site.findings()).at(-1)?.message);

  await site.end();
  delete site.env.OTEL_EXPORTER_OTLP_ENDPOINT;
  await site.send('11 minutes');
  page.expectPromised((await site.findings()).at(-1)?.message);
  await engine.sql.query('update public.trace_exports set fault = null');
  await engine.advance('16 minutes');
  await engine.sql.query('select public.wake_traces()');
  page.expectPromised((await site.findings()).at(-1)?.message);
  expect(JSON.stringify(await site.findings())).not.toContain('secret of mine');
});

test('each run that is lost has its report, whatever was reported before, and no answer brings a key into it', async ({
  engine,
}) => {
  await open(engine);
  const site = await new Site(engine).start();
  const { collector } = site;
  const well = collector.reply;
  const elsewhere = await new Collector().start();
  const ids = await site.end(40);
  const location = { location: `${elsewhere.url}/v1/traces` };
  collector.reply = () => ({ status: 307, headers: location });
  await site.send();
  expect((await site.findings()).at(-1)?.message).toContain('the collector answered 307');
  expect(elsewhere.headers).toEqual([]);

  const isBad = (span: Span) => [ids[0], ids[20]].includes(String(attribute(span, 'millrace.entity')));
  collector.reply = (spans) => (spans.some(isBad) ? { status: 400, body: 'bad span' } : well([]));
  collector.headers = [];
  await site.send('1 minute');
  expect(site.entities()).toHaveLength(38);
  // After a run that is refused for good the requests become large again.
  expect(collector.headers.length).toBeLessThan(30);
  const lost = (await site.findings()).filter(({ message }) => message.includes('was passed over'));
  expect(lost).toHaveLength(2);

  await site.end();
  const body = '{"partialSuccess": {"rejectedSpans": "1", "errorMessage": "not for secret of mine"}}';
  collector.reply = () => ({ status: 200, body });
  await site.send('1 minute');
  expect((await site.findings()).at(-1)?.message).toMatch(/the collector rejected 1 spans: not for …$/);
});

test('runs that wait for a transaction, or for a function that is gone, are reported as late', async ({ engine }) => {
  await open(engine);
  const site = await new Site(engine).start();
  const late = async () => {
    await engine.advance('16 minutes');
    await engine.sql.query('select public.wake_traces()');
    return (await site.findings()).filter(({ message }) => message.includes('over 15 minutes ago')).length;
  };
  // The clock of the database's sessions, since the test's own one stands.
  await engine.sql.query('update public.test_clock set at = clock_timestamp()');
  const other = await engine.database.connect();
  await other.query('begin; select txid_current()');
  await site.end();
  expect(await late()).toBe(1);
  await site.send();
  expect(site.entities()).toEqual([]);
  await other.query('rollback');
  engine.database.giveBack(other);
  site.collector.reply = () => ({ status: 503, headers: { 'retry-after': '1200' } });
  await site.send();
  // The wait that the collector asked for is no silence, what comes after is.
  expect(await late()).toBe(1);
  expect(await late()).toBe(1);
  expect(await late()).toBe(2);
});

test('a usage of any size leaves requests small, with the fields that are short', async ({ engine }) => {
  await open(engine);
  const site = await new Site(engine).start();
  await site.end();
  const usage = { model: 'x'.repeat(100_000), log: 'y', input_tokens: 12 };
  await engine.sql.query('update millrace.attempts set usage = $1', [JSON.stringify(usage)]);
  await site.send();
  expect(JSON.stringify(site.collector.spans).length).toBeLessThan(10_000);
  const [attempt] = named(site.collector.spans, 'weigh attempt');
  expect(attribute(attempt, 'gen_ai.usage.input_tokens')).toBe('12');
});

test('an attempt names the operation and the provider of the calls that its usage names, and guesses none', async ({
  engine,
}) => {
  await open(engine);
  const site = await new Site(engine).start();
  const tokens = { input_tokens: 5, output_tokens: 7 };
  const cases: [model: string, usage: Row, operation?: string, provider?: string][] = [
    ['claude-opus-5', { ...tokens, call: 'chat anthropic' }, 'chat', 'anthropic'],
    ['gpt-6', { input_tokens: 5, output_tokens: 0, call: 'chat azure.ai.openai' }, 'chat', 'azure.ai.openai'],
    ['gpt-6', { ...tokens, cached: true }],
    ['gpt-6, gpt-6-luna', { ...tokens, turns: 3, call: 'chat openai' }, 'invoke_agent', 'openai'],
    ['gpt-6, claude-opus-5', { ...tokens, call: 'chat openai, chat anthropic' }, 'chat'],
    ['gpt-6, text-embedding-3-small', { ...tokens, call: 'chat openai, embeddings openai' }, undefined, 'openai'],
    ['text-embedding-004', { input_tokens: 5, output_tokens: 0, call: 'embeddings' }, 'embeddings'],
    ['text-embedding-3-small', { input_tokens: 5, output_tokens: 0 }],
    ['nova-3', { input_tokens: null, output_tokens: null, audio_seconds: 9 }],
  ];
  const ids = await site.end(cases.length);
  await engine.sql.query(
    `update millrace.attempts a set usage = u.usage
    from unnest($1::text[], $2::jsonb[]) u(id, usage), millrace.runs r
    where r.id = a.run_id and r.entity_id = u.id`,
    [ids, cases.map(([model, usage]) => JSON.stringify({ model, ...usage }))],
  );
  await site.send();
  const names = ['gen_ai.request.model', 'gen_ai.operation.name', 'gen_ai.provider.name'];
  const sent = named(site.collector.spans, 'weigh attempt').map((span) => names.map((name) => attribute(span, name)));
  expect(sent.sort()).toEqual(cases.map(([model, _, operation, provider]) => [model, operation, provider]).sort());
});

test('a run that ends while the share is 0 is not sent later', async ({ engine }) => {
  await open(engine);
  const site = await new Site(engine).start();
  await engine.sql.query('update public.trace_exports set share = 0');
  await site.end(3);
  await engine.advance('1 minute');
  await engine.sql.query('select public.wake_traces()');
  await engine.sql.query('update public.trace_exports set share = 1');
  const ids = await site.end(2);
  await site.send();
  expect(site.entities()).toEqual(ids);
});

test('the calls read no more rows after more runs were sent', async ({ engine }) => {
  await open(engine);
  const site = await new Site(engine).start();
  const grow = (runs: number) =>
    engine.sql.query(
      `insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at)
      select p.id, p.current_version_id, '0', 'completed', n.at, n.at
      from millrace.pipelines p, generate_series(1, $1), lateral (select millrace.now() - interval '1 hour') n(at)`,
      [runs],
    );
  await grow(20);
  await engine.sql.query('vacuum analyze millrace.runs');
  await site.end(1);
  await engine.advance('3 seconds');
  await inCountingSession(engine.database.superUrl, async (client, rows) => {
    const read = async () => [
      await rows(() => client.query('select public.wake_traces()')),
      await rows(() => client.query('begin; select public.take_traces(200); rollback')),
    ];
    const few = await read();
    await grow(3000);
    // Hint bits and the like make a row or two of difference.
    for (const [call, many] of (await read()).entries()) expect(many).toBeLessThan((few[call] ?? 0) + 10);
  });
  await engine.sql.query(`delete from millrace.runs where entity_id = '0'`);
});

test('a share goes by the trace, whatever the call, and requests are bounded', async ({ engine }) => {
  const page = await open(engine);
  const site = await new Site(engine).start();
  await page.run(engine, 'update public.trace_exports');
  await site.end(230);
  await site.send();
  const sampled = site.entities();
  expect(sampled.length).toBeGreaterThan(5);
  expect(sampled.length).toBeLessThan(60);
  await engine.sql.query(`update public.trace_exports set sent_at = '-infinity', sent_run = 0`);
  await site.send();
  expect(site.entities()).toEqual([...sampled, ...sampled]);
  await engine.sql.query(`update public.trace_exports set sent_at = '-infinity', sent_run = 0, share = 1`);
  site.collector.taken = [];
  await site.send();
  expect(site.collector.taken.map((spans) => named(spans, 'parcels').length)).toEqual([200, 30]);
  expect(new Set(site.entities()).size).toBe(230);
});

test('a run whose transaction commits late is not passed over', async ({ engine }) => {
  await open(engine);
  const site = await new Site(engine).start();
  const [slow] = await site.end(1);
  const other = await engine.database.connect();
  await engine.sql.query(`update millrace.runs set status = 'running', finished_at = null where entity_id = $1`, [
    slow,
  ]);
  // The clock of the database's sessions, since the test's own one stands.
  await engine.sql.query('update public.test_clock set at = clock_timestamp()');
  await other.query('begin');
  await other.query(
    `update millrace.runs set status = 'completed', finished_at = millrace.now() where entity_id = $1`,
    [slow],
  );
  await site.end(1);
  await site.send('1 minute');
  expect(site.entities()).toEqual([]);
  await other.query('commit');
  await site.send('1 minute');
  expect(site.entities()).toHaveLength(2);
  engine.database.giveBack(other);
});

test('the page’s statements leave nothing of traces in the database', async ({ engine }) => {
  const { page } = await open(engine);
  await new Site(engine).start();
  const [, text = ''] = page.text.split('a migration takes traces away:');
  const statements = [...text.matchAll(/`([^`]+)`/g)].map(([, statement]) => statement);
  for (const statement of statements) await engine.sql.query(String(statement));
  expect(await engine.rows(`select jobname from cron.job where jobname ~ 'trace'`)).toEqual([]);
  expect(
    await engine.rows(`select oid::regprocedure::text from pg_proc where proname ~ 'trace' and proname <> 'traceparent'
      and pronamespace = 'public'::regnamespace`),
  ).toEqual([]);
});

test('a role that may not see the transactions of others is refused, with the remedy', async ({ engine }) => {
  const session = await engine.database.connect('service_role');
  expect(await engine.refusal(migration, [], session)).toMatchObject({
    code: '42501',
    hint: expect.stringMatching(/^As a superuser: grant pg_read_all_stats to service_role\./),
  });
  engine.database.giveBack(session);
});

test('the migration runs again over itself, and keeps shares and how far it was sent', async ({ engine }) => {
  await open(engine);
  const site = await new Site(engine).start();
  await site.end(2);
  await site.send();
  await engine.sql.query('update public.trace_exports set share = 0.5');
  const table = await engine.rows('table public.trace_exports');
  await engine.sql.query(migration);
  expect(await engine.rows('table public.trace_exports')).toEqual(table);
  await site.send();
  expect(site.entities()).toHaveLength(2);
});

test('nobody but the functions takes or notes traces, and the address is one of the function’s', async ({ engine }) => {
  await open(engine);
  const site = await new Site(engine).start();
  for (const role of ['anon', 'authenticated'] as const) {
    const session = await engine.database.connect(role);
    for (const statement of [
      'select public.take_traces(1)',
      'table public.trace_exports',
      'select public.wake_traces()',
    ])
      expect((await engine.refusal(statement, [], session)).code).toBe('42501');
    engine.database.giveBack(session);
  }
  const answer = answerMillrace(site.env, () => {});
  const asked = (headers: Row) =>
    answer(
      new Request('http://p.test/functions/v1/millrace/traces', { method: 'POST', headers: headers as HeadersInit }),
    );
  expect((await asked({})).status).toBe(401);
  expect((await asked({ apikey: 'k' })).status).toBe(202);
});
