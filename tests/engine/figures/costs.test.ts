import { expect } from 'vitest';
import type { Costs } from '../../../operators/answers.ts';
import { costOf } from '../../../operators/numbers.ts';
import { defineFamily, numbers, Spawner, spawnAll, startFolders } from '../../support/engine/children.ts';
import { signIn } from '../../support/engine/operators.ts';
import { planRows } from '../../support/engine/plan-rows.ts';
import { chain, type Engine, each, type Row, projectTest as test } from '../../support/engine.ts';
import { type Claimed, completed, failed, Worker } from '../../support/worker.ts';

/** Ends what is due at a stage, each attempt at this price. */
async function work(
  engine: Engine,
  stage: string,
  cost: unknown,
  pipeline = 'flow',
  end: (item: Claimed) => Row = (item) => completed(item),
  beside: Row = {},
): Promise<void> {
  const worker = await Worker.of(engine, stage, pipeline);
  const items = await worker.take(1000);
  expect(items.length).toBeGreaterThan(0);
  await worker.complete(
    items.map((item) => ({ ...end(item), ...(cost === undefined ? {} : { usage: { cost_usd: cost, ...beside } }) })),
  );
  await worker.leave();
}

const runCost = (engine: Engine, run: unknown) =>
  engine.value<number | null>('select sum(cost_usd)::float8 from millrace.stage_costs($1)', [run]);
const stageCosts = (engine: Engine, run: unknown) =>
  engine.rows('select stage, cost_usd::float8 from millrace.stage_costs($1)', [run]);

test('a run costs what its attempts cost, failed ones too', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two', 'three']));
  const [id] = await engine.queued('one');
  const { id: run } = await engine.run(id);
  await work(engine, 'one', 0.25, 'flow', (item) => failed(item));
  await engine.advance('1 hour');
  await work(engine, 'one', 0.5);
  await work(engine, 'two', undefined);
  expect(await runCost(engine, run)).toBe(0.75);
  expect(await stageCosts(engine, run)).toEqual([
    { stage: 'one', cost_usd: 0.75 },
    { stage: 'two', cost_usd: null },
    { stage: 'three', cost_usd: null },
  ]);
});

test('a cost is 0 only where somebody named that price, else null', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  const { id: run } = await engine.run(id);
  await work(engine, 'one', null);
  expect(await runCost(engine, run)).toBeNull();
  await work(engine, 'two', 0);
  expect(await runCost(engine, run)).toBe(0);
  expect(await runCost(engine, 999)).toBeNull();
});

test('the cost of a run comes with the number of its attempts whose usage is unreported', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  const { id: run } = await engine.run(id);
  const operator = await signIn(engine, 'ann', { role: 'viewer' });
  const told = async () => {
    const answer = await operator.ask<{ cost_usd: number | null; unreported: number }>('run', { run: Number(run) });
    return [answer.cost_usd, answer.unreported, costOf(answer)];
  };
  expect(await told()).toEqual([null, 0, '']);
  await work(engine, 'one', null, 'flow', (item) => completed(item), { unreported: true });
  expect(await told()).toEqual([null, 1, 'unknown of 1 attempt without reported tokens or a price']);
  await work(engine, 'two', 0.5);
  expect(await told()).toEqual([0.5, 1, '$0.5, unknown of 1 attempt without reported tokens or a price']);
  expect([0.999, 16.1, 15.64, 123.4, 12_345.6].map((cost_usd) => costOf({ cost_usd, unreported: 0 }))).toEqual([
    '$1.00',
    '$16.10',
    '$15.64',
    '$123.40',
    '$12,346',
  ]);
});

test('a result taken over from an earlier run is not paid for again', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  const { id: first } = await engine.run(id);
  await work(engine, 'one', 2);
  await work(engine, 'two', 1);
  await engine.queue('two', [id as string]);
  const { id: second } = await engine.run(id);
  expect(await runCost(engine, second)).toBeNull();
  await work(engine, 'two', 4);
  expect([await runCost(engine, first), await runCost(engine, second)]).toEqual([3, 4]);
});

test('an attempt that was started over since has been paid for', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  await work(engine, 'one', 2);
  await engine.queue('one', [id as string]);
  await work(engine, 'one', 4);
  expect(await runCost(engine, (await engine.run(id)).id)).toBe(6);
});

test('children are counted to the stage they are for, however deep', async ({ engine }) => {
  await engine.pipeline(chain(['ink']), {}, 'inks');
  await engine.sql.query('alter table public.items add column if not exists folder text');
  await defineFamily(engine, {
    files: [{ name: 'scan' }, { name: 'print', kind: 'pipeline', child: { pipeline: 'inks' }, needs: ['scan'] }],
    beside: [{ name: 'publish' }],
  });
  const [folder] = await startFolders(engine);
  await work(engine, 'publish', 10, 'folder');
  const spawner = await Spawner.of(engine);
  await spawner.spawn(numbers(1, 3), true);
  await spawner.wait();
  await work(engine, 'scan', 1, 'files');
  await work(engine, 'ink', 0.5, 'inks');
  const run = await engine.value('select id from millrace.runs where fan_out_id is null and entity_id = $1', [folder]);
  expect(await runCost(engine, run)).toBe(14.5);
  expect(await stageCosts(engine, run)).toEqual([
    { stage: 'split', cost_usd: 4.5 },
    { stage: 'publish', cost_usd: 10 },
  ]);
  const file = await engine.value('select min(id) from millrace.runs where fan_out_id = $1', [spawner.fanOut]);
  expect(await stageCosts(engine, file)).toEqual([
    { stage: 'scan', cost_usd: 1 },
    { stage: 'print', cost_usd: 0.5 },
  ]);
});

test('the cost of a parent includes children that are deleted since', async ({ engine }) => {
  await defineFamily(engine);
  const [folder] = await startFolders(engine);
  const spawner = await Spawner.of(engine);
  await spawner.spawn(numbers(1, 3), true);
  await spawner.wait();
  const files = (await engine.rows('select entity_id from millrace.runs where fan_out_id = $1', [spawner.fanOut])).map(
    (row) => row.entity_id as string,
  );
  await work(engine, 'scan', 1, 'files');
  await work(engine, 'blend', undefined, 'files');
  const run = await engine.value(
    `select r.id from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id where p.name = 'folder' and r.entity_id = $1`,
    [folder],
  );
  const costs = async () => (await stageCosts(engine, run))[0];
  const before = await costs();
  expect(before).toEqual({ stage: 'split', cost_usd: 3 });
  await engine.sql.query('delete from public.items where id = any ($1)', [files.slice(0, 2)]);
  expect(await costs()).toEqual(before);
  await engine.sql.query('delete from public.items where id = any ($1)', [files.slice(2)]);
  expect(await costs()).toEqual(before);
  expect(
    await engine.value('select sum(cost_usd)::float8 from millrace.attempt_costs($1) where attempt_id = $2', [
      [run],
      spawner.item.attempt,
    ]),
  ).toBe(3);
  await engine.sql.query('delete from public.folders where id = $1', [folder]);
  for (const _ of [1, 2]) await engine.sql.query('select millrace.sweep()');
  expect(await engine.rows('select * from millrace.former_costs')).toEqual([]);
});

test('children that failed are paid for, though another parent has run their rows before the retry', async ({
  engine,
}) => {
  await defineFamily(engine, { split: { child: { pipeline: 'files' } } });
  await engine.insert(2);
  const [folder] = await startFolders(engine, 2);
  const spawnAll = async () => {
    const spawner = await Spawner.of(engine);
    await spawner.spawn(numbers(1, 2), true);
    await spawner.wait();
    return spawner.fanOut;
  };
  const fanOut = await spawnAll();
  const worker = await Worker.of(engine, 'scan', 'files');
  const items = await worker.take();
  await worker.complete(items.map((item) => ({ ...failed(item, { permanent: true }), usage: { cost_usd: 1 } })));
  await engine.sql.query('select public.millrace_collect_children($1)', [[fanOut]]);
  await engine.sql.query('select millrace.sweep()');
  await spawnAll();
  await work(engine, 'scan', 4, 'files');
  await work(engine, 'blend', undefined, 'files');
  await engine.sql.query('select millrace.sweep()');
  // The workers so far are not heard of again.
  await engine.advance('16 seconds');
  const run = await engine.value<string>(
    `select r.id from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id where p.name = 'folder' and r.entity_id = $1`,
    [folder],
  );
  await engine.sql.query('select millrace.retry($1)', [run]);
  await spawnAll();
  await work(engine, 'scan', 8, 'files');
  expect(await stageCosts(engine, run)).toMatchObject([{ stage: 'split', cost_usd: 18 }, { stage: 'publish' }]);
});

test('four times the children of a parent that stays are four times the work to delete', async ({ engine }) => {
  await defineFamily(engine);
  const folders = await startFolders(engine, 2);
  for (const count of [200, 800]) await spawnAll(engine, numbers(1, count));
  await work(engine, 'scan', 1, 'files');
  const remove = 'delete from public.items where folder = $1';
  const [few = 0, many = 0] = await each(folders, (folder) => planRows(engine.database.superUrl, remove, [folder]));
  expect(await engine.rows('select cost_usd::int from millrace.former_costs order by 1')).toEqual([
    { cost_usd: 200 },
    { cost_usd: 800 },
  ]);
  expect(few).toBeGreaterThan(1000);
  expect(many / few).toBeLessThan(6);
});

test('an account sees what its leads have cost, and nothing of another’s', async ({ engine }) => {
  const [own, other] = ['a11ce000-0000-4000-8000-000000000001', 'b0b00000-0000-4000-8000-000000000002'];
  await engine.sql.query(
    `insert into public.leads (email, company_url, account_id)
     select 'a@b.test', 'http://b.test', a::uuid from unnest(array[$1, $1, $2]) a`,
    [own, other],
  );
  const user = await engine.database.connect('authenticated', { app_metadata: { account_id: own } });
  const costs = async () => (await user.query('select *, cost_usd::float8 from public.lead_costs')).rows;
  expect(await costs()).toEqual([{ account_id: own, leads: '2', completed: '0', cost_usd: null }]);
  await engine.sql.query(`update public.leads set scrape_status = 'queued'`);
  for (const [place, stage] of ['scrape', 'intel', 'strategy', 'subject', 'messaging'].entries()) {
    await work(engine, stage, place === 0 ? undefined : 0.25, 'leads');
  }
  // A second execution is paid for as well; what it takes over is not paid for twice.
  await engine.sql.query(`update public.leads set messaging_status = 'queued' where account_id = $1`, [own]);
  await work(engine, 'messaging', 0.5, 'leads');
  expect(await costs()).toEqual([{ account_id: own, leads: '2', completed: '2', cost_usd: 3 }]);
  const [all] = await engine.rows('select sum(cost_usd)::float8 as cost from public.lead_costs');
  expect(all).toEqual({ cost: 4 });
});

test('a book costs what its pages and its table of contents cost as well', async ({ engine }) => {
  const account = 'a11ce000-0000-4000-8000-000000000001';
  const book = await engine.value(
    `insert into public.books (account_id, title, source_path) values ($1::uuid, 'b', $1::text || '/b.txt') returning id`,
    [account],
  );
  await engine.sql.query(`select millrace.start('books', $1)`, [book]);
  await spawnAll(
    engine,
    [1, 2].map((key) => ({ key: `${key}`, of: 2 })),
    'split',
    'books',
  );
  await work(engine, 'text_layer', 0.5, 'pages');
  await work(engine, 'blend', undefined, 'pages');
  await work(engine, 'label', 0.25, 'pages');
  expect(await engine.rows('select *, cost_usd::float8 from public.book_costs')).toEqual([
    { account_id: account, books: '1', completed: '0', cost_usd: 1.5 },
  ]);
});

const sharesOf = ({ shares }: Costs, kind: string) =>
  shares.filter((share) => share.kind === kind).map(({ name, usd }) => [name, usd]);

test('costs are added up by pipeline, stage, model and tenant, failed attempts too, however many runs there are and whatever is deleted', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two'], { retry: { max_attempts: 1 } }));
  const ids = await engine.queued('one', 3);
  await engine.sql.query(`update millrace.runs set quota_key = 'acme' where id in (select max(id) from millrace.runs)`);
  await work(engine, 'one', 0.5, 'flow', completed, { model: 'small' });
  await work(engine, 'two', 2, 'flow', (item) => failed(item, { permanent: true }), { model: 'large' });
  const operator = await signIn(engine, 'otto', {});
  expect(await operator.ask('costs'), 'as of the last sweep').toMatchObject({ shares: [], looked: 3 });
  await engine.sql.query('select millrace.sweep()');
  await engine.sql.query('delete from public.items where id = $1', [ids[0]]);
  const found = await operator.ask<Costs>('costs', { pipeline: 'flow' });
  expect(found).toMatchObject({ looked: 2, whole: true, dearest: [1, 2].map(() => ({ usd: 2.5, pipeline: 'flow' })) });
  expect(sharesOf(found, 'pipeline')).toEqual([['flow', 7.5]]);
  expect(sharesOf(found, 'stage')).toEqual([
    ['two', 6],
    ['one', 1.5],
  ]);
  expect(sharesOf(found, 'model')).toEqual([
    ['large', 6],
    ['small', 1.5],
  ]);
  expect(sharesOf(found, 'tenant'), 'no tenant named').toEqual([
    ['', 5],
    ['acme', 2.5],
  ]);
  expect(found).toMatchObject({
    since: '2026-10-03T00:00:00+00:00',
    points: [{ at: '2026-11-02T00:00:00+00:00', usd: 7.5 }],
  });
  const vera = await signIn(engine, 'vera', { pipelines: ['other'] });
  expect(await vera.ask('costs')).toMatchObject({ looked: 0, shares: [], dearest: [] });
});

test('the costs of hours and days are exact, beside as many before them, until hours and days are too old', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one']));
  const operator = await signIn(engine, 'otto', {});
  const spend = async (usd: number) => {
    await engine.queued('one', 1);
    await work(engine, 'one', usd);
    await engine.sql.query('select millrace.sweep()');
  };
  const ask = async (since: string, before?: string) => {
    const answer = await operator.ask<Costs>('costs', { since, ...(before && { before }) });
    const points = answer.points.map(({ at, usd }) => `${at.slice(8, 13)} ${usd}`);
    return { since: answer.since.slice(8, 13), ...Object.fromEntries(sharesOf(answer, 'stage')), points };
  };
  const day = '2026-11-02';
  await spend(1);
  await engine.advance('1 hour');
  await spend(2);
  await engine.advance('90 minutes');
  await spend(4);
  expect(await ask(`${day}T10:30Z`), 'the whole hour of since, and the present one').toEqual({
    since: '02T10',
    one: 6,
    points: ['02T09 1', '02T10 2', '02T11 4'],
  });
  expect(await ask(`${day}T09:00Z`, `${day}T10:00Z`)).toEqual({ since: '02T09', one: 1, points: ['02T09 1'] });
  await engine.advance('2 days');
  expect(await ask(`${day}T10:30Z`), 'the whole day of since').toEqual({
    since: '02T00',
    one: 7,
    points: ['02T00 7'],
  });
  const kept = (unit: string) => engine.value('select sum(usd)::float8 from millrace.costs where unit = $1', [unit]);
  expect([await kept('hour'), await kept('day')]).toEqual([7, 7]);
  await engine.advance('1 day');
  await engine.sql.query('select millrace.sweep()');
  expect([await kept('hour'), await kept('day')], 'hours are kept for three days').toEqual([null, 7]);
  await engine.sql.query(`update millrace.settings set value = '2' where name = 'hours_days'`);
  await engine.advance('1 minute');
  await engine.sql.query('select millrace.sweep()');
  expect(await kept('day')).toBe(null);
});

test('of many tenants the 500 dearest are named, and the others are the rest of the sum', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.queued('one', 503);
  await engine.sql.query(`update millrace.runs set quota_key = 'tenant ' || id`);
  await work(engine, 'one', 0.25);
  await engine.sql.query('select millrace.sweep()');
  const found = await (await signIn(engine, 'otto', {})).ask<Costs>('costs');
  expect(sharesOf(found, 'tenant')).toEqual(Array(500).fill([expect.stringMatching(/^tenant \d+$/), 0.25]));
  expect(sharesOf(found, 'pipeline')).toEqual([['flow', 503 * 0.25]]);
});
