import { expect } from 'vitest';
import { defineCutOver, runs, turn } from '../support/cut-over.ts';
import { type Engine, test } from '../support/engine.ts';
import { begin, openTransaction, rungStages, untilBlocked } from '../support/sessions.ts';
import { completed, failed, runStage, Worker, waiting } from '../support/worker.ts';

const pending = { first: 'pending', second: 'pending', whole: 'pending' };
const ways = {
  new: { mode: 'on', other: 'off', pipeline: 'phases', stage: 'first' },
  old: { mode: 'off', other: 'on', pipeline: 'monolith', stage: 'whole' },
};
type Way = keyof typeof ways;

async function finish(engine: Engine, way: Way): Promise<void> {
  for (const stage of way === 'new' ? ['first', 'second'] : ['whole'])
    await runStage(engine, stage, ways[way].pipeline);
}

test('the setting decides until somebody sets the flag, Vault before the row', async ({ engine }) => {
  await defineCutOver(engine);
  const [off] = await engine.queued('first');
  expect(await engine.statuses(off)).toEqual({ ...pending, whole: 'queued' });
  await engine.sql.query(`update millrace.settings set value = 'true' where name = 'use_new_pipeline'`);
  const [on] = await engine.queued('first');
  expect(await engine.statuses(on)).toEqual({ ...pending, first: 'queued' });
  await engine.sql.query(`select vault.create_secret('false', 'millrace_use_new_pipeline')`);
  const [vault] = await engine.queued('first');
  expect(await runs(engine, vault)).toEqual(['monolith running']);
  await turn(engine, 'on');
  expect(await runs(engine, (await engine.queued('first'))[0])).toEqual(['phases running']);
  await turn(engine, 'default');
  expect(await runs(engine, (await engine.queued('first'))[0])).toEqual(['monolith running']);
});

test('a setting that is neither true nor false counts as false, and is told of', async ({ engine }) => {
  await defineCutOver(engine);
  await engine.sql.query(`select vault.create_secret('yes', 'millrace_use_new_pipeline')`);
  const [id] = await engine.queued('first');
  expect(await runs(engine, id)).toEqual(['monolith running']);
  expect(await engine.rows('select code, message from millrace.log where code like $1', ['use_new%'])).toEqual([
    {
      code: 'use_new_pipeline_malformed',
      message: `use_new_pipeline is 'yes', but must be true or false: it counts as false`,
    },
  ]);
  expect(await engine.rows(`select * from millrace.doctor() where what like 'use_new%'`)).toEqual([
    {
      what: 'use_new_pipeline is true or false',
      ok: false,
      detail: expect.stringMatching(/^yes: .*delete from vault\.secrets where name = 'millrace_use_new_pipeline'$/),
    },
  ]);
});

test('by groups: those whose metadata names one of them go the new way', async ({ engine }) => {
  await defineCutOver(engine);
  await turn(engine, 'groups', { groups: ['a', 'b'] });
  const ids = await engine.insert(4);
  await engine.sql.query(
    `update public.items set metadata = coalesce((array['{"org": "a"}', '{"org": "b"}', '{"org": "c"}'])[id]::jsonb, '{}')`,
  );
  await engine.queue('first', ids);
  for (const [place, way] of ['phases', 'phases', 'monolith', 'monolith'].entries()) {
    expect(await runs(engine, ids[place])).toEqual([`${way} running`]);
  }
});

test('by share: a row lies where it lies, and a share that grows only adds rows', async ({ engine }) => {
  await defineCutOver(engine);
  const ids = await engine.insert(1000);
  let before: string[] = [];
  for (const share of [0, 0.1, 0.5, 0.9, 1]) {
    await turn(engine, 'share', { share });
    await engine.sql.query(
      'delete from millrace.runs; delete from millrace.attempts; delete from millrace.run_metadata',
    );
    await engine.sql.query(`update public.items set first_status = 'pending', whole_status = 'pending'`);
    await engine.queue('first', ids);
    const rows = await engine.rows<{ id: string }>(
      `select r.entity_id as id from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id where p.name = 'phases' order by 1`,
    );
    const now = rows.map((row) => row.id);
    expect(now).toEqual(expect.arrayContaining(before));
    expect(Math.abs(now.length / 1000 - share)).toBeLessThan(0.05);
    before = now;
  }
});

test('a thousand rows of one statement are parted at once, with one wake a function', async ({ engine }) => {
  await defineCutOver(engine);
  await engine.configureDoorbell();
  await turn(engine, 'share', { share: 0.5 });
  await engine.insert(1000);
  await engine.sql.query(`update public.items set first_status = 'queued'`);
  expect(
    await engine.rows(
      'select first_status, whole_status, count(*)::int > 400 as many from public.items group by 1, 2 order by 1',
    ),
  ).toEqual([
    { first_status: 'pending', whole_status: 'queued', many: true },
    { first_status: 'queued', whole_status: 'pending', many: true },
  ]);
  expect(await engine.value('select count(distinct entity_id)::int from millrace.runs')).toBe(1000);
  expect((await rungStages(engine)).sort()).toEqual(['monolith.whole', 'phases.first']);
});

test('a row that is inserted as queued, and start(), go the way of the flag', async ({ engine }) => {
  await defineCutOver(engine);
  await engine.sql.query(`insert into public.items (id, first_status) values (7, 'queued')`);
  expect(await engine.statuses('7')).toEqual({ ...pending, whole: 'queued' });
  const [id] = await engine.insert();
  for (const way of ['old', 'new'] as const) {
    await turn(engine, ways[way].mode);
    const run = await engine.value(`select millrace.start('phases', $1)`, [id]);
    expect(run).toBe((await engine.run(id)).id);
    expect(await engine.statuses(id)).toEqual({ ...pending, [ways[way].stage]: 'queued' });
    await finish(engine, way);
  }
  expect(await runs(engine, id)).toEqual(['monolith completed', 'phases completed']);
});

test('pipelines without a projection are parted as well', async ({ engine }) => {
  await defineCutOver(engine, 'none');
  const [id] = await engine.insert();
  await engine.sql.query(`select millrace.start('phases', $1)`, [id]);
  await turn(engine, 'on');
  await engine.sql.query(`select millrace.start('phases', $1, p_restart => true)`, [id]);
  expect(await engine.attempts(id)).toEqual(['whole 1 cancelled superseded', 'whole 2 queued']);
  await finish(engine, 'old');
  await engine.sql.query(`select millrace.start('phases', $1)`, [id]);
  expect(await runs(engine, id)).toEqual(['monolith completed', 'phases running']);
});

test('start() returns the live run that the row has, whichever way the flag points by now', async ({ engine }) => {
  await defineCutOver(engine);
  const [id] = await engine.insert();
  const start = (pipeline: string) => engine.value(`select millrace.start('${pipeline}', $1)`, [id]);
  const old = await start('phases');
  await turn(engine, 'on');
  expect([await start('phases'), await start('monolith')]).toEqual([old, old]);
  expect(await engine.attempts(id)).toEqual(['whole 1 queued']);
  await finish(engine, 'old');
  const fresh = await start('phases');
  await turn(engine, 'off');
  expect(await start('phases')).toBe(fresh);
  expect(await engine.refusal(`select millrace.start('monolith', $1)`, [id])).toMatchObject({ code: 'MR005' });
  expect(await runs(engine, id)).toEqual(['monolith completed', 'phases running']);
});

test('a user who may write the first status alone starts either way', async ({ engine }) => {
  await defineCutOver(engine);
  await engine.insert();
  await engine.sql.query('grant select, update (first_status) on public.items to authenticated');
  const user = await engine.database.connect('authenticated');
  await user.query(`update public.items set first_status = 'queued'`);
  expect(await engine.statuses('1')).toEqual({ ...pending, whole: 'queued' });
});

/** Where a run may be when the flag is turned. */
const moments: Record<string, (engine: Engine, way: Way) => Promise<void>> = {
  queued: async () => {},
  started: async (engine, way) => {
    await (await Worker.of(engine, ways[way].stage, ways[way].pipeline)).takeOne();
  },
  waiting: async (engine, way) => {
    const worker = await Worker.of(engine, ways[way].stage, ways[way].pipeline);
    await worker.report(waiting(await worker.takeOne(), 'job-1'));
    await worker.leave();
  },
  'failed with a retry ahead': async (engine, way) => {
    const worker = await Worker.of(engine, ways[way].stage, ways[way].pipeline);
    await worker.report(failed(await worker.takeOne()));
    await worker.leave();
  },
};

for (const way of ['old', 'new'] as const) {
  const { mode, other, pipeline, stage } = ways[way];

  test.for(Object.keys(moments))(
    `the flag turned while a run of the ${way} way is %s leaves it there`,
    async (moment, { engine }) => {
      await defineCutOver(engine);
      await turn(engine, mode);
      const [id] = await engine.queued('first');
      await moments[moment]?.(engine, way);
      await turn(engine, other);
      // Of a row that shows pending, as one of the old way does, a user can write queued again.
      if (way === 'new') await engine.sql.query(`select millrace.start('phases', $1, p_restart => true)`, [id]);
      else await engine.queue('first', [id as string]);
      expect(await runs(engine, id)).toEqual([`${pipeline} running`]);
      expect(await engine.statuses(id)).toEqual({ ...pending, [stage]: 'queued' });
      await finish(engine, way);
      expect(await runs(engine, id)).toEqual([`${pipeline} completed`]);
    },
  );

  test.for(['completed', 'failed', 'cancelled'])(
    `after a ${way} run that is %s the flag decides anew, and the former columns are cleared`,
    async (end, { engine }) => {
      await defineCutOver(engine);
      await turn(engine, mode);
      const [id] = await engine.queued('first');
      if (end === 'completed') await finish(engine, way);
      else if (end === 'cancelled') await engine.sql.query('select millrace.cancel($1)', [(await engine.run(id)).id]);
      else {
        const worker = await Worker.of(engine, stage, pipeline);
        await worker.report(failed(await worker.takeOne(), { permanent: true }));
        await worker.leave();
      }
      await turn(engine, other);
      await engine.queue('first', [id as string]);
      const next = way === 'old' ? ways.new : ways.old;
      expect(await runs(engine, id)).toEqual([`${pipeline} ${end}`, `${next.pipeline} running`]);
      expect(await engine.statuses(id)).toEqual({ ...pending, [next.stage]: 'queued' });
      expect(await engine.item(id)).toMatchObject({
        [`${stage}_result`]: null,
        [`${stage}_error`]: null,
        [`${stage}_started_at`]: null,
      });
      await finish(engine, way === 'old' ? 'new' : 'old');
      expect(await runs(engine, id)).toEqual([`${pipeline} ${end}`, `${next.pipeline} completed`]);
    },
  );

  test(`a failed ${way} run is not taken up again once the row went the other way`, async ({ engine }) => {
    await defineCutOver(engine);
    await turn(engine, mode);
    const [id] = await engine.queued('first');
    const worker = await Worker.of(engine, stage, pipeline);
    await worker.report(failed(await worker.takeOne(), { permanent: true }));
    await worker.leave();
    const { id: run } = await engine.run(id);
    await turn(engine, other);
    await engine.queue('first', [id as string]);
    const calls = {
      'retry($1)': /cannot be retried: its entity 1 has a later run/,
      'reset($1)': /is not the latest/,
      [`skip($1, '${stage}')`]: /is not the latest/,
      [`start_stage($1, '${stage}')`]: /is not the latest/,
    };
    for (const [call, message] of Object.entries(calls)) {
      const refusal = await engine.refusal(`select millrace.${call}`, [run]);
      expect(refusal).toMatchObject({ code: 'MR004', message: expect.stringMatching(message) });
    }
    const replay = 'select millrace.replay($1, p_dry_run => false) as answer';
    expect(await engine.value(replay, [pipeline])).toEqual({ matched: 0, replayed: 0 });
    await finish(engine, way === 'old' ? 'new' : 'old');
    expect((await engine.refusal('select millrace.retry($1)', [run])).code).toBe('MR004');
  });
}

test('before anything is queued the flag as it is then counts', async ({ engine }) => {
  await defineCutOver(engine);
  await turn(engine, 'on');
  const [id] = await engine.insert();
  await turn(engine, 'off');
  await engine.queue('first', [id as string]);
  expect(await runs(engine, id)).toEqual(['monolith running']);
});

test('the old pipeline queued by hand goes the old way whatever the flag, but not beside a live run of the new', async ({
  engine,
}) => {
  await defineCutOver(engine);
  await turn(engine, 'on');
  const [busy, free, done] = await engine.insert(3);
  await engine.queue('first', [busy as string, done as string]);
  await runStage(engine, 'first', 'phases');
  await engine.sql.query('select millrace.cancel(r.id) from millrace.runs r where r.entity_id = $1', [done]);
  await engine.queue('whole', [free as string, done as string]);
  expect(await engine.statuses(free)).toEqual({ ...pending, whole: 'queued' });
  expect(await engine.statuses(done)).toEqual({ ...pending, whole: 'queued' });
  for (const call of [
    `update public.items set whole_status = 'queued' where id = $1`,
    `select millrace.start('monolith', $1)`,
  ]) {
    expect(await engine.refusal(call, [busy])).toEqual({
      code: 'MR005',
      message: `stage whole of pipeline monolith cannot start for 1 entities (${busy}, …): a run of pipeline phases is under way`,
      hint: expect.stringMatching(/^Let it finish, or cancel it first: select millrace\.cancel/),
    });
  }
  // What the hint says helps.
  const { hint } = await engine.refusal(`select millrace.start('monolith', $1)`, [busy]);
  await engine.sql.query(`${hint?.slice(hint.indexOf('select'))}`);
  await engine.sql.query(`select millrace.start('monolith', $1)`, [busy]);
  expect(await runs(engine, busy)).toEqual(['phases cancelled', 'monolith running']);
});

test('a later stage queued by hand is the new way, but not beside a live run of the old, nor on results from before it', async ({
  engine,
}) => {
  await defineCutOver(engine);
  await turn(engine, 'on');
  const [id] = await engine.queued('first');
  await finish(engine, 'new');
  await turn(engine, 'off');
  await engine.queue('second', [id as string]);
  expect(await runs(engine, id)).toEqual(['phases completed', 'phases running']);
  expect(await engine.statuses(id)).toEqual({ ...pending, first: 'completed', second: 'queued' });
  await runStage(engine, 'second', 'phases');
  await engine.queue('first', [id as string]);
  const queue = `update public.items set second_status = 'queued' where id = $1`;
  expect(await engine.refusal(queue, [id])).toMatchObject({
    code: 'MR005',
    message: expect.stringMatching(/a run of pipeline monolith is under way/),
  });
  await finish(engine, 'old');
  expect(await engine.refusal(queue, [id])).toMatchObject({
    code: 'MR005',
    message: expect.stringMatching(/its need first has no result/),
  });
  expect(await engine.statuses(id)).toEqual({ ...pending, whole: 'completed' });
});

test('one statement that queues both ways starts a row once', async ({ engine }) => {
  await defineCutOver(engine);
  const [id] = await engine.insert();
  await engine.sql.query(`update public.items set first_status = 'queued', whole_status = 'queued'`);
  expect(await runs(engine, id)).toEqual(['monolith running']);
  expect(await engine.statuses(id)).toEqual({ ...pending, whole: 'queued' });
});

test('rows that show nothing of the other way are not written for it', async ({ engine }) => {
  await defineCutOver(engine);
  await turn(engine, 'on');
  await engine.sql.query(`
    create table public.writes (n int);
    create function public.count_write() returns trigger language plpgsql as $$ begin insert into public.writes values (1); return null; end $$;
    create trigger count_write after update on public.items for each row execute function public.count_write()`);
  await engine.queued('first', 3);
  expect(await engine.value('select count(*)::int from public.writes')).toBe(3);
});

test('two sessions that start a row each way wait for one another, and one is refused or follows', async ({
  engine,
}) => {
  await defineCutOver(engine);
  const [id] = await engine.insert();
  const one = await openTransaction(engine);
  const two = await engine.database.connect();
  await turn(engine, 'on');
  await one.query(`select millrace.start('phases', $1)`, [id]);
  const refused = begin(engine.refusal(`select millrace.start('monolith', $1)`, [id], two));
  await untilBlocked(engine, two);
  await one.query('commit');
  expect(await refused).toMatchObject({ code: 'MR005' });
  await finish(engine, 'new');

  await one.query('begin');
  await one.query(`update public.items set whole_status = 'queued' where id = $1`, [id]);
  const follows = begin(two.query(`update public.items set first_status = 'queued' where id = $1`, [id]));
  await untilBlocked(engine, two);
  await one.query('commit');
  await follows;
  expect(await runs(engine, id)).toEqual(['phases completed', 'monolith running']);
  expect(await engine.attempts(id)).toEqual([
    'first 1 completed',
    'second 1 completed',
    'whole 1 cancelled superseded',
    'whole 2 queued',
  ]);
});

test('a retry of one way and a start of the other wait for one another', async ({ engine }) => {
  await defineCutOver(engine);
  const [id] = await engine.queued('first');
  const worker = await Worker.of(engine, 'whole', 'monolith');
  await worker.report(failed(await worker.takeOne(), { permanent: true }));
  const { id: run } = await engine.run(id);
  await turn(engine, 'on');
  const one = await openTransaction(engine);
  await one.query('select millrace.retry($1)', [run]);
  const two = await engine.database.connect();
  const start = begin(two.query(`select millrace.start('phases', $1)`, [id]));
  await untilBlocked(engine, two);
  await one.query('commit');
  await start;
  expect(await runs(engine, id)).toEqual(['monolith running']);
});

test('a report that comes late for a run whose row went the other way changes nothing', async ({ engine }) => {
  await defineCutOver(engine);
  const [id] = await engine.queued('first');
  const worker = await Worker.of(engine, 'whole', 'monolith');
  const item = await worker.takeOne();
  await engine.sql.query('select millrace.cancel($1)', [item.run]);
  await turn(engine, 'on');
  await engine.queue('first', [id as string]);
  expect(await worker.report(completed(item))).toEqual(['stale']);
  expect(await engine.statuses(id)).toEqual({ ...pending, first: 'queued' });
});

test('check_invariants finds a row that is under way both ways', async ({ engine }) => {
  await defineCutOver(engine);
  const [id] = await engine.queued('first');
  await engine.sql.query('begin');
  await engine.sql.query(
    `select millrace.wake(millrace.queue_here(p.id, millrace.first_stage(p.id), array[$1], '{}')) from millrace.pipelines p where p.name = 'phases'`,
    [id],
  );
  expect(await engine.rows('select rule, detail from millrace.check_invariants()')).toEqual([
    {
      rule: 'no entity is under way both in a pipeline and in the one that replaces it',
      detail: expect.stringMatching(/^entity 1, and run \d+ of the other$/),
    },
  ]);
  await engine.sql.query('rollback');
});

test('cut_over_way says which way a row would go, and why', async ({ engine }) => {
  await defineCutOver(engine);
  const [id] = await engine.insert();
  const way = async () => (await engine.rows(`select way, why from millrace.cut_over_way('phases', $1)`, [id]))[0];
  expect(await way()).toEqual({ way: 'old', why: 'the flag is default, and use_new_pipeline is false' });
  await turn(engine, 'on');
  expect(await way()).toEqual({ way: 'new', why: 'the flag is on' });
  await turn(engine, 'share', { share: 0.001 });
  expect(await way()).toEqual({
    way: 'old',
    why: expect.stringMatching(/^the share is 0\.001, and the row lies at 0\.\d{4}$/),
  });
  await turn(engine, 'groups', { groups: ['a'] });
  expect(await way()).toEqual({ way: 'old', why: 'its org is null' });
  await engine.sql.query(`update public.items set metadata = '{"org": "a"}'`);
  expect(await way()).toEqual({ way: 'new', why: 'its org is a' });
  await engine.queue('first', [id as string]);
  await turn(engine, 'off');
  expect(await way()).toEqual({ way: 'new', why: expect.stringMatching(/^run \d+ is under way$/) });
});

test('cut_over_way finds a row as start() does, however its key is written', async ({ engine }) => {
  await defineCutOver(engine);
  await turn(engine, 'share', { share: 0.5 });
  await engine.insert(20);
  const ask = (id: string | null) => engine.rows(`select way, why from millrace.cut_over_way('phases', $1)`, [id]);
  for (let id = 1; id <= 20; id++) expect(await ask(`00${id}`)).toEqual(await ask(`${id}`));
  await engine.sql.query(`select millrace.start('phases', '007')`);
  expect(await ask('007')).toMatchObject([{ why: expect.stringMatching(/ is under way$/) }]);
  const refusal = (id: string | null) => engine.refusal(`select millrace.cut_over_way('phases', $1)`, [id]);
  for (const id of ['21', null]) {
    expect(await refusal(id)).toMatchObject({ code: 'MR003', message: `table public.items has no row with id ${id}` });
  }
  expect(await refusal('seven')).toMatchObject({ code: 'MR002', hint: 'Give values of the column id.' });
});

test('a transaction that would not see a run of the other way starts none: it conflicts, or is refused', async ({
  engine,
}) => {
  await defineCutOver(engine, 'none');
  await turn(engine, 'on');
  const [id] = await engine.insert();
  await engine.sql.query(`select millrace.start('monolith', $1)`, [id]);
  const worker = await Worker.of(engine, 'whole', 'monolith');
  await worker.report(failed(await worker.takeOne(), { permanent: true }));
  const { id: old } = await engine.run(id);
  for (const isolation of ['repeatable read', 'serializable']) {
    for (const call of [
      `start('phases', $1)`,
      `start('monolith', $1)`,
      `retry(${old} + $1 - $1)`,
      `reset(${old} + $1 - $1)`,
    ]) {
      const early = await openTransaction(engine, isolation);
      await early.query('select from millrace.runs');
      expect(await engine.refusal(`select millrace.${call}`, [id], early)).toMatchObject({
        code: 'MR005',
        message: `no run of pipeline monolith can be started or taken up in a transaction that is ${isolation}`,
      });
      await early.query('rollback');
    }
  }
  expect(await runs(engine, id)).toEqual(['monolith failed']);
});

test('with a projection it conflicts with whoever has started the row since', async ({ engine }) => {
  await defineCutOver(engine);
  await turn(engine, 'on');
  const [id] = await engine.insert();
  const early = await openTransaction(engine, 'repeatable read');
  await early.query('select from millrace.runs');
  await engine.sql.query(`select millrace.start('monolith', $1)`, [id]);
  expect(await engine.refusal(`select millrace.start('phases', $1)`, [id], early)).toMatchObject({ code: '40001' });
  await early.query('rollback');
  expect(await runs(engine, id)).toEqual(['monolith running']);
});

test('groups cannot end while somebody sets the flag to some, nor be set while a definition ends them', async ({
  engine,
}) => {
  const { phases } = await defineCutOver(engine);
  const ungrouped = JSON.stringify({ ...phases, replaces: { pipeline: 'monolith' } });
  const set = `select millrace.set_cut_over('phases', 'groups', p_groups => array['a'])`;
  const one = await openTransaction(engine);
  const two = await engine.database.connect();
  await one.query(set);
  const defining = begin(engine.refusal('select millrace.define($1)', [ungrouped], two));
  await untilBlocked(engine, two);
  await one.query('commit');
  expect(await defining).toMatchObject({
    code: 'MR001',
    message: 'replaces.group_by is missing, but the flag of pipeline phases names groups',
  });
  await turn(engine, 'off');
  await one.query('begin');
  await one.query('select millrace.define($1)', [ungrouped]);
  const setting = begin(engine.refusal(set, [], two));
  await untilBlocked(engine, two);
  await one.query('commit');
  expect(await setting).toMatchObject({ code: 'MR002', message: expect.stringMatching(/^p_mode is groups, but/) });
});

test('removing a row both ways have had takes all of its runs with it', async ({ engine }) => {
  await defineCutOver(engine);
  await engine.queued('first');
  await finish(engine, 'old');
  await turn(engine, 'on');
  await engine.queue('first', ['1']);
  await engine.sql.query('delete from public.items');
  expect(await engine.rows('select * from millrace.runs')).toEqual([]);
});
