import { expect } from 'vitest';
import { databaseRpc } from '../../../packages/test/database-rpc.ts';
import { answerMetrics } from '../../../supabase/functions/_millrace/metrics/serve-metrics.ts';
import { addChannel, minutes } from '../../support/engine/alerts.ts';
import { type Family, readMetrics } from '../../support/engine/open-metrics.ts';
import { chain, type Engine, findingsTest as test } from '../../support/engine.ts';
import { completed, failed, runStage, Worker } from '../../support/worker.ts';

const token = 'a-token-of-the-monitoring';
const env = { SUPABASE_URL: 'http://project.test', SUPABASE_SERVICE_ROLE_KEY: 'k', METRICS_TOKEN: token };
const open = 'application/openmetrics-text; version=1.0.0';

async function ask(engine: Engine, path = '', headers: Record<string, string> = {}, given: object = env) {
  const client = await engine.database.connect('service_role');
  const answer = await answerMetrics(given as typeof env, () => databaseRpc(client))(
    new Request(`http://project.test/functions/v1/millrace/metrics${path}`, { headers }),
  );
  engine.database.giveBack(client);
  return answer;
}

const bearer = { authorization: `Bearer ${token}` };
const scrape = async (engine: Engine): Promise<Family[]> =>
  readMetrics(await (await ask(engine, '', { ...bearer, accept: open })).text(), 'openmetrics');
const sampleOf = (families: Family[], name: string, labels: Record<string, string> = {}) =>
  families
    .flatMap(({ samples }) => samples)
    .find((each) => each.name === name && Object.entries(labels).every(([key, value]) => each.labels[key] === value))
    ?.value;

/** Three items of which one failed, with costs. */
async function worked(engine: Engine): Promise<void> {
  await engine.pipeline(chain(['only', 'next']));
  await addChannel(engine);
  await engine.queued('only', 4);
  const worker = await Worker.of(engine, 'only');
  const items = await worker.take(3);
  const usage = { model: 'm', input_tokens: 10, output_tokens: 2, cost_usd: 0.25 };
  await worker.report(
    ...items.map((item, at) =>
      at === 0
        ? failed(item, { permanent: true, code: 'boom', message: 'it is broken' })
        : { ...completed(item), usage },
    ),
  );
  await worker.leave();
  await minutes(engine, 1);
}

test('counters and gauges are those of the engine, as a reader of the format reads them', async ({ engine }) => {
  await worked(engine);
  const families = await scrape(engine);
  const only = { pipeline: 'flow', stage: 'only' };
  const read = (name: string, labels = {}) => sampleOf(families, name, labels);
  expect(read('millrace_attempts_total', { ...only, outcome: 'completed' })).toBe(2);
  expect(read('millrace_attempts_total', { ...only, outcome: 'failed' })).toBe(1);
  expect(read('millrace_runs_total', { pipeline: 'flow', outcome: 'failed' })).toBe(1);
  expect(read('millrace_cost_usd_total', only)).toBe(0.5);
  expect(read('millrace_tokens_total', { ...only, direction: 'input' })).toBe(20);
  expect(read('millrace_attempt_run_seconds_count', only)).toBe(3);
  expect(read('millrace_ready', only)).toBe(1);
  expect(read('millrace_ready', { ...only, stage: 'next' })).toBe(2);
  expect(read('millrace_oldest_ready_seconds', only)).toBe(60);
  expect(read('millrace_sweep_age_seconds')).toBe(0);
  expect(read('millrace_alert_messages', { channel: 'ops', state: 'dead' })).toBe(0);
});

test('no counter falls when runs are pruned', async ({ engine }) => {
  await worked(engine);
  await runStage(engine, 'only');
  await runStage(engine, 'next');
  await minutes(engine, 1);
  const counters = async () =>
    (await scrape(engine)).filter(({ type }) => type === 'counter').flatMap(({ samples }) => samples);
  const before = await counters();
  await engine.advance('91 days');
  await engine.sql.query('select millrace.prune()');
  await minutes(engine, 1);
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(0);
  expect(await counters()).toEqual(before);
});

test('an answer with metrics is text/plain unless the request accepts OpenMetrics, and each form is valid', async ({
  engine,
}) => {
  await worked(engine);
  const plain = await ask(engine, '', bearer);
  expect(plain.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const families = readMetrics(await plain.text(), 'text');
  expect(sampleOf(families, 'millrace_attempts_total', { stage: 'only', outcome: 'completed' })).toBe(2);
  const asked = await ask(engine, '', { ...bearer, accept: open });
  expect(asked.headers.get('content-type')).toBe(`${open}; charset=utf-8`);
});

test('a project without a pipeline has metrics too', async ({ engine }) => {
  expect(sampleOf(await scrape(engine), 'millrace_release')).toBe(1);
});

test('a request for metrics shows the token, as a bearer or as a password; a key of the project is refused', async ({
  engine,
}) => {
  const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });
  const statusOf = async (headers: Record<string, string>) => (await ask(engine, '', headers)).status;
  expect(await statusOf(bearer)).toBe(200);
  expect(await statusOf(basic(`service_role:${token}`))).toBe(200);
  for (const headers of [
    {},
    { authorization: 'Bearer wrong' },
    { authorization: `Bearer ${token}x` },
    { authorization: token },
    { authorization: 'Basic !!!' },
    basic(`${token}:`),
    { apikey: 'k' },
    { authorization: 'Bearer k' },
  ]) {
    const answer = await ask(engine, '', headers as Record<string, string>);
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
      401,
      'Basic realm="millrace", charset="UTF-8"',
    ]);
    expect((await ask(engine, '/health', headers as Record<string, string>)).status).toBe(401);
  }
});

test('a token that is missing or short is named with its remedy', async ({ engine }) => {
  for (const given of [{ METRICS_TOKEN: undefined }, { METRICS_TOKEN: 'short' }]) {
    const answer = await ask(engine, '', bearer, { ...env, ...given });
    expect(answer.status).toBe(500);
    expect(await answer.text()).toContain('METRICS_TOKEN');
  }
});

test('health is 200 while all is well, and 503 when the sweep is old, an alert is open or doctor finds something', async ({
  engine,
}) => {
  const net = await engine.database.connect('supabase_admin');
  await net.query(`set application_name = 'pg_net 0.20.4'`);
  await engine.configureWakeUps();
  await engine.pipeline([{ name: 'only' }]);
  await engine.sql.query('revoke all on public.items from anon, authenticated');
  await engine.sql.query('select millrace.sweep()');
  const health = async () => {
    const answer = await ask(engine, '/health', bearer);
    return { status: answer.status, ...((await answer.json()) as { faults: string[] }) };
  };
  expect(await health()).toEqual({
    ...{ status: 200, ok: true, faults: [], more: 0, quiet_alerts: 0, dead_last_day: '0' },
    ...(await engine.rows('select release, level from millrace.engine()'))[0],
  });
  await engine.advance('61 seconds');
  expect(await health()).toMatchObject({
    status: 503,
    faults: [expect.stringMatching(/^the sweep does not run: .*doctor\(\)/)],
  });
  await engine.sql.query('select millrace.sweep()');
  expect((await health()).status).toBe(200);
  await engine.sql.query(`delete from vault.secrets where name = 'millrace_project_url'`);
  expect(await health()).toMatchObject({
    status: 503,
    faults: ['not so: project_url is set: missing: npx millrace connect writes it'],
  });
  await engine.sql.query(`select vault.create_secret('http://project.test', 'millrace_project_url')`);
  await engine.sql.query(
    `insert into millrace.alert_rules (name, kind, stage, above) values ('some', 'backlog', '*', 0)`,
  );
  await engine.queued('only');
  await engine.advance('20 seconds');
  await engine.advance('41 seconds');
  await engine.sql.query('select millrace.sweep()');
  await runStage(engine, 'only');
  expect(await health()).toMatchObject({ status: 503, faults: ['1 run is ready at only of flow, above 0'] });
});

test('a database that does not answer is 503', async () => {
  const answer = await answerMetrics(env, () => async () => ({ data: null, error: { message: 'gone' }, status: 503 }))(
    new Request('http://project.test/functions/v1/millrace/metrics/health', { headers: bearer }),
  );
  expect(answer.status).toBe(503);
});
