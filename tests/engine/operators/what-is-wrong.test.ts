// An assistant reads over MCP, of a project that is broken in one of several ways, the cause and what helps.
import { expect } from 'vitest';
import { readTools } from '../../../cli/operate/mcp-reads.ts';
import { withSecretKey } from '../../support/engine/operators.ts';
import { type Engine, findingsTest, type Row } from '../../support/engine.ts';
import { completed, failed, Worker } from '../../support/worker.ts';

/** A project that is well: its worker of pg_net runs, it is connected and swept. */
async function healthy(engine: Engine, stage: Row = {}): Promise<void> {
  const worker = await engine.database.connect('supabase_admin');
  await worker.query(`set application_name = 'pg_net 0.20.4'`);
  await engine.configureWakeUps();
  await engine.pipeline([{ name: 'only', ...stage }]);
  await engine.sql.query('revoke all on public.items from anon, authenticated');
  await sweep(engine);
}

const sweep = (engine: Engine) => engine.sql.query('select millrace.sweep()');

/** The answers of the tools that the prompt what_is_wrong names, with those for the newest runs. */
async function readAll(engine: Engine): Promise<string> {
  const operator = await withSecretKey(engine);
  const api = {
    read: <Answer>(name: string, query: Row = {}) => operator.ask<Answer>(name, query),
    act: () => Promise.reject(new Error('It acts.')),
  };
  const tools = new Map(readTools(api).map((tool) => [tool.name, tool]));
  const call = async (name: string, given: Row = {}) => (await tools.get(name)?.run(given)) as Row;
  const answers = [await call('overview'), await call('doctor'), await call('alerts'), await call('dead_letters')];
  const { runs } = await call('runs', { limit: 3 });
  for (const { run } of runs as Row[]) answers.push(await call('run', { run }));
  return answers.map((answer) => JSON.stringify(answer)).join('\n');
}

/** Rows that wait, and wake-ups that were answered so. */
async function waiting(engine: Engine, status?: number): Promise<void> {
  await engine.queued('only', 3);
  await engine.advance('31 seconds');
  await sweep(engine);
  const owner = await engine.database.connect('supabase_admin');
  if (status) {
    await owner.query(
      `with sent as (delete from net.http_request_queue returning id)
       insert into net._http_response (id, status_code) select id, $1 from sent`,
      [status],
    );
  }
  await owner.query(`update millrace.posts set posted_at = posted_at - interval '14 seconds'`);
  await engine.advance('14 seconds');
}

/** An attempt that fails so. */
async function fails(engine: Engine, error: Row): Promise<void> {
  await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await worker.complete([failed(item, error)]);
  await sweep(engine);
}

interface Broken {
  project: string;
  stage?: Row;
  harm: (engine: Engine) => Promise<unknown>;
  cause: RegExp;
  remedy: RegExp;
  /** The statement that makes the database sound again, for the invariants that each test ends with. */
  mend?: string;
}

const broken: Broken[] = [
  {
    project: 'a function that does not start',
    harm: (engine) => waiting(engine, 503),
    cause: /nobody takes it up: flow-only answered 503 \d+ s ago: the function did not start/,
    remedy: /see the log of flow-only/,
  },
  {
    project: 'a function that is not deployed',
    harm: (engine) => waiting(engine, 404),
    cause: /flow-only answered 404 \d+ s ago: it is not deployed/,
    remedy: /npx supabase functions deploy flow-only/,
  },
  {
    project: 'a stage for workers that nobody runs',
    stage: { host: 'worker' },
    harm: (engine) => waiting(engine),
    cause: /nobody takes it up: its worker is silent: none has asked for work/,
    remedy: /npx millrace work starts a worker/,
  },
  {
    project: 'a setting that is missing',
    harm: (engine) => fails(engine, { code: 'misconfigured', message: 'LLM_URL is not set' }),
    cause: /LLM_URL is not set/,
    remedy: /settings are written by supabase secrets set/,
  },
  {
    project: 'a wrong key of the model',
    harm: (engine) =>
      fails(engine, { code: 'misconfigured', message: 'The model refused LLM_AUTH_TOKEN: correct it.' }),
    cause: /The model refused LLM_AUTH_TOKEN/,
    remedy: /correct it\..*Do what the message says/s,
  },
  {
    project: 'a service that asks for patience',
    harm: (engine) => fails(engine, { code: 'rate_limited', message: 'The model answered 429' }),
    cause: /The model answered 429/,
    remedy: /Such an attempt is retried for a day, not before its retry-after-ms or Retry-After/,
  },
  {
    project: 'a table without one of its columns',
    harm: (engine) => engine.sql.query('alter table public.items drop column only_retry_count'),
    cause: /table public\.items has no column only_retry_count/,
    remedy: /select millrace\.add_columns\('public\.items', 'only'\); select millrace\.attach\('flow'\)/,
    mend: `select millrace.add_columns('public.items', 'only'); select millrace.attach('flow')`,
  },
  {
    project: 'a table without its triggers',
    harm: (engine) => engine.sql.query('drop trigger millrace_flow_updated on public.items'),
    cause: /trigger millrace_flow_updated is missing/,
    remedy: /select millrace\.attach\('flow'\)/,
  },
  {
    project: 'a sweep without its job',
    harm: async (engine) => {
      await engine.sql.query(`select cron.unschedule('millrace-sweep')`);
      await engine.advance('61 seconds');
    },
    cause: /pg_cron job millrace-sweep.*missing/,
    remedy: /select cron\.schedule\('millrace-sweep'/,
  },
  {
    project: 'a budget that is used up',
    stage: { limits: { shared: ['model'] } },
    harm: async (engine) => {
      await engine.queued('only', 2);
      const worker = await Worker.of(engine, 'only');
      await worker.complete([{ ...completed(await worker.takeOne()), usage: { cost_usd: 2 } }]);
      await sweep(engine);
    },
    cause: /its budget pays for nothing more at flow\.only until \d/,
    remedy: /select millrace\.throttle_limit\('model'/,
  },
  {
    project: 'a row that waits for a person',
    stage: { kind: 'manual', decision: { schema: { type: 'object' }, deadline_seconds: 3600 } },
    harm: (engine) => engine.queued('only'),
    cause: /only waits for a person/,
    remedy: /select public\.millrace_decide\(\d+, ANSWER\).*npx millrace skip \d+ --stage only/,
  },
  {
    project: 'a stage that somebody has paused',
    harm: async (engine) => {
      await (await withSecretKey(engine)).act('pause', {
        pipeline: 'flow',
        stage: 'only',
        operator: 'ann',
        reason: 'legal reads it',
      });
      await engine.queued('only');
    },
    cause: /"waits":\["only is paused( by \w+)?: legal reads it/,
    remedy: /npx millrace unpause flow only lets it go on/,
  },
  {
    project: 'a table whose trigger refuses what the engine writes',
    harm: async (engine) => {
      await engine.queued('only');
      await engine.sql.query(`create function public.refuses() returns trigger language plpgsql
        as $$begin raise 'permission denied for table audit' using errcode = '42501'; end$$`);
      await engine.sql.query(
        `create trigger refuses before update on public.items for each row execute function public.refuses()`,
      );
      await (await Worker.of(engine, 'only')).claim(1);
      await sweep(engine);
    },
    cause: /projection_failed at .*permission denied for table audit/,
    remedy: /A row refuses what the engine shows on it, mostly by a trigger.*correct the trigger/,
    mend: 'drop trigger refuses on public.items',
  },
];

for (const { project, stage, harm, cause, remedy, mend } of broken) {
  findingsTest(`of ${project} an assistant reads the cause and what helps`, async ({ engine }) => {
    await engine.sql.query(`select millrace.define_limit('model', '{"spending": {"usd": 1, "per_seconds": 3600}}')`);
    await healthy(engine, stage);
    const before = await readAll(engine);
    await harm(engine);
    const told = await readAll(engine);
    expect(
      { before: cause.test(before), cause: told.match(cause)?.[0], remedy: told.match(remedy)?.[0] },
      told,
    ).toEqual({
      before: false,
      cause: expect.any(String),
      remedy: expect.any(String),
    });
    if (mend) await engine.sql.query(mend);
  });
}
