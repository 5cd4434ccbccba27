// The ten views of millrace_watch, for Supabase's SQL editor, Reports and Grafana.
import fs from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { signIn } from '../../support/engine/operators.ts';
import { planRows } from '../../support/engine/plan-rows.ts';
import { chain, type Engine, test } from '../../support/engine.ts';
import { completed, failed, finish, runStage, Worker } from '../../support/worker.ts';

const migration = fs.readFileSync(
  path.join(import.meta.dirname, '../../../supabase/functions/_millrace/dashboard/watch.sql'),
  'utf8',
);

const views = ['dead', 'dead_runs', 'dear', 'findings', 'hours', 'late', 'rows', 'slow', 'stuck', 'today'];

const read = (engine: Engine, view: string) => engine.rows(`select * from millrace_watch.${view}`);

/** A row that is done, one that is dead, and one that nobody takes up. */
async function played(engine: Engine): Promise<void> {
  await engine.pipeline(chain(['one', 'two']));
  await engine.sql.query(migration);
  const [, dead] = await engine.queued('one', 2);
  await runStage(engine, 'one');
  const worker = await Worker.of(engine, 'two');
  for (let left = 2; left > 0; left--) {
    const item = await worker.takeOne();
    await worker.report(
      item.entity_id === dead
        ? failed(item, { permanent: true, message: 'no page' })
        : { ...completed(item, {}), usage: { cost_usd: 0.5 } },
    );
  }
  await engine.sql.query('select millrace.add_pulses()');
}

test('each of the ten views has rows or none without an error, and a comment on itself and each column', async ({
  engine,
}) => {
  await played(engine);
  expect(
    await engine.rows(
      `select table_name from information_schema.views where table_schema = 'millrace_watch' order by 1`,
    ),
  ).toEqual(views.map((table_name) => ({ table_name })));
  for (const view of views) await read(engine, view);
  expect(
    await engine.rows(`
      select a.attrelid::regclass::text as view, a.attname
      from pg_class c
      join pg_attribute a on a.attrelid = c.oid and a.attnum >= 0 and not a.attisdropped
      where c.relnamespace = 'millrace_watch'::regnamespace
        and (col_description(c.oid, a.attnum) is null or obj_description(c.oid) is null)`),
  ).toEqual([]);
});

test('a copy stands there with the label of the row that it reads', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']), { label: 'label' });
  await engine.sql.query(migration);
  await engine.queued('one');
  const { run, attempt } = await finish(engine, 'one', {});
  const ada = await signIn(engine, 'ada', { payloads: true });
  await ada.act('edit', { run, stage: 'one', attempt, last: attempt + 1, copy: true, result: { ok: true } });
  const worker = await Worker.of(engine, 'two');
  await worker.report(...(await worker.take()).map((item) => failed(item, { permanent: true })));
  for (const view of ['rows', 'dead_runs'])
    expect((await read(engine, view)).map(({ label }) => label)).toEqual(['item 1', 'item 1']);
});

test('nobody but postgres and service_role reads the views', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.sql.query(migration);
  const may = (role: string) =>
    engine.value(`
      select count(*)::int from unnest('{${views}}'::text[]) v
      where has_schema_privilege('${role}', 'millrace_watch', 'usage')
        and has_table_privilege('${role}', 'millrace_watch.' || v, 'select')
        and has_function_privilege('${role}', format('millrace_watch.%I()', v), 'execute')`);
  expect([await may('anon'), await may('authenticated'), await may('service_role')]).toEqual([0, 0, 10]);
  await engine.sql.query('set role service_role');
  for (const view of views) await read(engine, view);
  await engine.sql.query('reset role');
});

test('the text runs over an older one, and the rights that a role was given since then stay', async ({ engine }) => {
  const role = `charts_${process.pid}_${Date.now()}`;
  await engine.sql.query(migration);
  await engine.sql.query(`
    create role ${role};
    grant ${role} to postgres;
    grant usage on schema millrace_watch to ${role};
    grant select on millrace_watch.hours to ${role};
    grant execute on function millrace_watch.hours() to ${role}`);
  await engine.sql.query(migration);
  await engine.sql.query(`set role ${role}`);
  await read(engine, 'hours');
  await engine.sql.query(`
    reset role;
    revoke all on schema millrace_watch from ${role};
    revoke all on millrace_watch.hours from ${role};
    revoke all on function millrace_watch.hours() from ${role};
    drop role ${role}`);
});

test('the views name what is dead, dear and late, and the rows with their stages', async ({ engine }) => {
  await played(engine);
  expect(await read(engine, 'dead')).toMatchObject([{ stage: 'two', error_code: 'timeout', runs: '1' }]);
  expect(await read(engine, 'dead_runs')).toMatchObject([{ stage: 'two', error_message: 'no page' }]);
  expect(await read(engine, 'dear')).toMatchObject([
    { stage: 'two', cost_usd: '0.5', before_usd: '0', completed: '1' },
  ]);
  expect(await read(engine, 'today')).toMatchObject([
    { completed: '1', failed: '1', completed_yesterday: '0', cost_usd: '0.5' },
  ]);
  expect(await read(engine, 'slow')).toHaveLength(2);
  expect(await read(engine, 'hours')).toHaveLength(48);
  expect(await read(engine, 'rows')).toMatchObject([
    { status: 'failed', stages: { one: 'completed', two: 'failed' }, error: 'no page' },
    { status: 'completed', stages: { one: 'completed', two: 'completed' }, error: null },
  ]);
  expect(await read(engine, 'stuck')).toEqual([]);
  await engine.sql.query(`select millrace.pause('flow', 'one')`);
  await engine.queued('one');
  expect(await read(engine, 'stuck')).toMatchObject([
    { stage: 'one', why: 'paused', remedy: `select millrace.unpause('flow', 'one');`, ready: '1' },
  ]);
});

test('the views read as few rows beside 3,000 runs as their bounds say', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.sql.query(migration);
  await engine.queued('only', 3000);
  await engine.sql.query(`
    update millrace.attempts set state = 'failed', queue_at = null, finished_at = millrace.now(), error = '{"code": "timeout"}';
    update millrace.runs set status = 'failed', finished_at = millrace.now(), error_code = 'timeout',
      failed_stage_id = (select id from millrace.stages where name = 'only');
    analyze millrace.runs, millrace.attempts`);
  // doctor(), which findings calls, has a test of its own.
  for (const view of views.filter((name) => name !== 'findings')) {
    const rows = await planRows(engine.database.superUrl, `select * from millrace_watch.${view}`);
    // Causes, and what failed at a stage, are counted to 10,000.
    expect([view, rows]).toEqual([
      view,
      expect.toSatisfy((n: number) => n < (['dead', 'stuck'].includes(view) ? 10_000 : 2500)),
    ]);
  }
  await engine.sql.query('truncate public.items, millrace.runs, millrace.attempts');
});

test('each query of the Grafana dashboard runs', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.sql.query(migration);
  const dashboard = fs.readFileSync(path.join(import.meta.dirname, '../../../docs/metrics/watch.json'), 'utf8');
  const { panels } = JSON.parse(dashboard) as { panels: { id: number; targets: { rawSql: string }[] }[] };
  expect(new Set(panels.map(({ id }) => id)).size).toBe(10);
  for (const { targets } of panels) {
    await engine.sql.query(String(targets[0]?.rawSql).replace('$__timeFilter(at)', `at > now() - interval '1 day'`));
  }
});
