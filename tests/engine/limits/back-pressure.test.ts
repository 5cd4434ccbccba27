// Back pressure: what is unfinished at a later stage, and what is on its way there, never exceeds its threshold.
import { expect } from 'vitest';
import { planRows } from '../../support/engine/plan-rows.ts';
import { type Engine, type Row, type StageDefinition, test } from '../../support/engine.ts';
import { begin, jobEnd } from '../../support/sessions.ts';
import { type Claimed, completed, failed, released, resume, runStage, Worker, waiting } from '../../support/worker.ts';

const heldBy = (stage: string, backlog: number) => ({ limits: { back_pressure: { stage, backlog } } });
const worked = { max_workers: 20, batch_size: 200 };
const sweep = (engine: Engine) => engine.value<Row>('select millrace.sweep()');

/** first → gate → last, where last holds back the gate. */
const gated = (backlog: number, last: Row = {}): StageDefinition[] => [
  { name: 'first', ...worked },
  { name: 'gate', kind: 'gate', needs: ['first'], ...heldBy('last', backlog) },
  { name: 'last', needs: ['gate'], ...worked, ...last },
];

const unfinished = (engine: Engine, ...stages: string[]) =>
  engine.value<number>(
    `select count(*)::int from millrace.attempts a join millrace.stages s on s.id = a.stage_id
     where s.name = any ($1) and a.state in ('queued', 'started', 'waiting')`,
    [stages],
  );

/** The attempts in work at the first of two stages, and the unfinished ones at the second. */
const onTheWay = (engine: Engine) =>
  engine.value<number>(
    `select count(*)::int from millrace.attempts a join millrace.stages s on s.id = a.stage_id
     where a.state in ('started', 'waiting') and s.name = 'first'
       or a.state in ('queued', 'started', 'waiting') and s.name = 'last'`,
  );

test('four workers that claim 200 each never exceed a threshold of 300', async ({ engine }) => {
  await engine.pipeline([
    { name: 'first', ...worked, ...heldBy('last', 300) },
    { name: 'last', needs: ['first'], ...worked },
  ]);
  await engine.queued('first', 1200);
  const workers = await Promise.all(Array.from({ length: 4 }, () => Worker.of(engine, 'first')));
  const work = new Map<Worker, Claimed[]>();
  const most: number[] = [];
  for (let round = 0; round < 6; round++) {
    await Promise.all(
      workers.map(async (worker) => {
        const items = work.get(worker) ?? [];
        const answer =
          items.length > 0
            ? worker.complete(
                items.map((i) => completed(i)),
                200,
              )
            : worker.claim(200);
        work.set(worker, (await answer).batch);
      }),
    );
    most.push(await onTheWay(engine));
  }
  expect(Math.max(...most)).toBe(300);
  expect(await unfinished(engine, 'last')).toBe(300);
  const last = await Worker.of(engine, 'last');
  const items = await last.take(100);
  expect(await workers[0]?.take(200), 'what is in work there is unfinished').toEqual([]);
  await last.report(...items.slice(0, 60).map((item) => completed(item)), ...items.slice(60).map((i) => released(i)));
  expect(await workers[0]?.take(200)).toHaveLength(60);
});

test('two gates at one threshold share it, and the second does not wait for the first', async ({ engine }) => {
  await engine.pipeline([
    { name: 'left', kind: 'gate', when: '$.entity.label == "left"', enabled: false, ...heldBy('last', 5) },
    { name: 'right', kind: 'gate', when: '$.entity.label == "right"', enabled: false, ...heldBy('last', 5) },
    { name: 'last', needs: ['left', 'right'], ...worked },
  ]);
  for (const label of ['left', 'right']) {
    await engine.sql.query(
      `insert into public.items (label, left_status) select $1, 'queued' from generate_series(1, 4)`,
      [label],
    );
  }
  await engine.sql.query('update millrace.stages set enabled = true');
  const gate = (name: string) => `select * from millrace.pass_gate(
    (select id from millrace.stages where name = '${name}'), 2000)`;
  const one = await engine.database.connect();
  const two = await engine.database.connect();
  await one.query('begin');
  expect((await one.query(gate('left'))).rows).toMatchObject([{ passed: 4 }]);
  expect((await two.query(gate('right'))).rows, 'somebody else passes').toMatchObject([{ passed: 0 }]);
  await one.query('commit');
  expect((await two.query(gate('right'))).rows).toMatchObject([{ passed: 1 }]);
  expect(await unfinished(engine, 'last')).toBe(5);
});

test('two sweeps and two workers that race at one threshold never exceed it', async ({ engine }) => {
  await engine.pipeline([
    { name: 'sort', ...worked },
    { name: 'left', kind: 'gate', needs: ['sort'], when: '$.entity.id % 2 == 0', ...heldBy('last', 7) },
    { name: 'first', needs: ['left'], ...worked, ...heldBy('last', 7) },
    { name: 'right', kind: 'gate', needs: ['first'], ...heldBy('last', 7) },
    { name: 'last', needs: ['right'], ...worked },
  ]);
  await engine.queued('sort', 60);
  const sessions = await Promise.all([engine.database.connect(), engine.database.connect()]);
  const workers = {
    sort: await Worker.of(engine, 'sort'),
    sorter: await Worker.of(engine, 'sort'),
    first: await Worker.of(engine, 'first'),
    other: await Worker.of(engine, 'first'),
    last: await Worker.of(engine, 'last'),
  };
  const step = async (worker: Worker, size: number) => {
    const batch = await worker.take(size);
    await worker.complete(batch.map((item) => completed(item)));
  };
  for (
    let round = 0;
    round < 400 && (await unfinished(engine, 'sort', 'left', 'first', 'right', 'last')) > 0;
    round++
  ) {
    await Promise.all([
      step(workers.sort, 3),
      step(workers.sorter, 3),
      step(workers.first, 4),
      step(workers.other, 4),
      step(workers.last, 3),
      ...sessions.map((session) => session.query('select millrace.sweep_gates()')),
    ]);
    expect(await unfinished(engine, 'last')).toBeLessThanOrEqual(7);
  }
  expect(await unfinished(engine, 'sort', 'left', 'first', 'right', 'last')).toBe(0);
});

test('an attempt in work or waiting at a service takes room, and one in backoff takes none', async ({ engine }) => {
  const retry = { max_attempts: 2, backoff: { kind: 'list', seconds: [600] } };
  await engine.pipeline(gated(3, { kind: 'external', completion: { callback: true }, retry }));
  await engine.queued('first', 5);
  await runStage(engine, 'first');
  expect(await unfinished(engine, 'last')).toBe(3);
  const last = await Worker.of(engine, 'last');
  const [retried, job, started] = (await last.take(3)) as [Claimed, Claimed, Claimed];
  await last.report(waiting(job, 'job-1'));
  expect(await sweep(engine)).not.toHaveProperty('passed');
  await last.report(failed(retried));
  expect(await sweep(engine)).toMatchObject({ passed: 1 });
  await last.report(failed(started, { permanent: true }));
  expect(await sweep(engine)).toMatchObject({ passed: 1 });
  await engine.advance('10 minutes');
  // An attempt that is due again takes its room again.
  await resume(engine, [jobEnd(job, 'job-1')]);
  expect(await sweep(engine)).not.toHaveProperty('passed');
  expect(await unfinished(engine, 'last')).toBe(3);
});

test('a link that waits for a host that refuses it takes no room from links of other hosts', async ({ engine }) => {
  await engine.sql.query(`
    select millrace.define_limit('hosts', '{"key_rate": {"count": 60, "per_seconds": 60}}')`);
  await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
  await engine.pipeline(gated(3, { limits: { shared: ['hosts'], concurrency: { column: 'key', limit: 9 } } }));
  const queue = (key: string, count: number) =>
    engine.sql.query(
      `insert into public.items (key, first_status) select $1, 'queued' from generate_series(1, $2::int)`,
      [key, count],
    );
  await queue('slow', 4);
  await runStage(engine, 'first');
  const last = await Worker.of(engine, 'last');
  await last.report(failed(await last.takeOne(), { code: 'rate_limited', retry_after_ms: 86_400_000 }));
  await sweep(engine);
  expect(await last.take(9)).toEqual([]);
  await queue('fast', 4);
  await runStage(engine, 'first');
  await sweep(engine);
  expect((await last.take(9)).map(({ entity }) => entity.key)).toEqual(['fast', 'fast', 'fast']);
});

test('jobs that wait at a service on their way to the later stage count', async ({ engine }) => {
  await engine.pipeline([
    { name: 'first', ...worked, kind: 'external', completion: { callback: true }, ...heldBy('last', 3) },
    { name: 'last', needs: ['first'], ...worked },
  ]);
  await engine.queued('first', 6);
  const worker = await Worker.of(engine, 'first');
  const items = await worker.take(2);
  await worker.report(...items.map((item, place) => waiting(item, `job-${place}`)));
  expect(await worker.take(10)).toHaveLength(1);
  await resume(engine, [
    jobEnd(items[0] as Claimed, 'job-0', { outcome: 'failed', error: { code: 'x', message: 'x', permanent: true } }),
  ]);
  expect(await worker.take(10)).toHaveLength(1);
  expect(await worker.take(10)).toEqual([]);
});

test('a list of thresholds lets through what the fullest stage has room for', async ({ engine }) => {
  const back_pressure = [
    { stage: 'middle', backlog: 4 },
    { stage: 'last', backlog: 6 },
  ];
  await engine.pipeline([
    { name: 'gate', kind: 'gate', limits: { back_pressure } },
    { name: 'middle', needs: ['gate'], ...worked },
    { name: 'last', needs: ['middle'], ...worked },
  ]);
  await engine.queued('gate', 20);
  expect(await sweep(engine)).toMatchObject({ passed: 4 });
  await runStage(engine, 'middle');
  expect(await sweep(engine)).toMatchObject({ passed: 2 });
  expect(await sweep(engine), 'two are on their way').not.toHaveProperty('passed');
  await runStage(engine, 'middle');
  expect(await sweep(engine)).not.toHaveProperty('passed');
  await runStage(engine, 'last');
  expect(await sweep(engine)).toMatchObject({ passed: 4 });
});

test('an attempt at a stage that is held back itself is not on the way from an earlier stage', async ({ engine }) => {
  await engine.pipeline([
    { name: 'first', ...worked, ...heldBy('last', 3) },
    { name: 'between', needs: ['first'], ...worked },
    { name: 'gate', kind: 'gate', needs: ['between'], enabled: false, ...heldBy('last', 3) },
    { name: 'last', needs: ['gate'], ...worked },
  ]);
  await engine.queued('first', 8);
  for (let round = 0; round < 2; round++) {
    expect(await runStage(engine, 'first')).toHaveLength(3);
    await runStage(engine, 'between');
  }
  await engine.sql.query(`select millrace.unpause('flow', 'gate')`);
  expect(await sweep(engine)).toMatchObject({ passed: 3 });
  expect(await runStage(engine, 'first')).toEqual([]);
});

test('a run that a person starts behind a gate is let in, and counts', async ({ engine }) => {
  await engine.pipeline(gated(2));
  const ids = await engine.queued('first', 4);
  await runStage(engine, 'first');
  const gate = await engine.run(ids[3]);
  await engine.sql.query(`select millrace.skip($1, 'gate')`, [gate.id]);
  expect(await unfinished(engine, 'last')).toBe(3);
  const last = await Worker.of(engine, 'last');
  await last.report(...(await last.take(1)).map((item) => completed(item)));
  expect(await sweep(engine)).not.toHaveProperty('passed');
});

test('a claim that finds another counting is told to come again, and waits for nobody', async ({ engine }) => {
  await engine.pipeline([
    { name: 'first', ...worked, ...heldBy('last', 3) },
    { name: 'second', needs: ['first'], ...worked, ...heldBy('last', 3) },
    { name: 'last', needs: ['second'], ...worked },
  ]);
  await engine.queued('first', 2);
  await runStage(engine, 'first');
  await engine.queued('first', 2);
  const [one, two] = [await Worker.of(engine, 'first'), await Worker.of(engine, 'second')];
  await one.client.query('begin');
  expect(await one.take(1)).toHaveLength(1);
  expect(await begin(two.claim())).toMatchObject({ status: 'empty', wait_ms: 50 });
  await one.client.query('commit');
  expect(await two.take()).toHaveLength(2);
});

test('an attempt in work before the back-pressure was defined counts', async ({ engine }) => {
  const stages = [
    { name: 'first', ...worked },
    { name: 'last', needs: ['first'], ...worked },
  ];
  const definition = await engine.pipeline(stages);
  await engine.queued('first', 6);
  await (await Worker.of(engine, 'first')).take(2);
  definition.stages = [{ ...stages[0], name: 'first', ...heldBy('last', 3) }, stages[1] as StageDefinition];
  await engine.define(definition);
  expect(await (await Worker.of(engine, 'first')).take(10)).toHaveLength(1);
});

test('a threshold that is taken away holds nothing back', async ({ engine }) => {
  const definition = await engine.pipeline(gated(1));
  await engine.queued('first', 5);
  await runStage(engine, 'first');
  expect(await unfinished(engine, 'last')).toBe(1);
  definition.stages = [...gated(1)].map(({ limits: _, ...stage }) => stage as StageDefinition);
  await engine.define(definition);
  expect(await sweep(engine)).toMatchObject({ passed: 4 });
  const held = `select count(*)::int from millrace.back_pressures b join millrace.stages s on s.id = b.stage_id
    where s.pipeline_id = (select id from millrace.pipelines where name = 'flow')`;
  expect(await engine.value(held)).toBe(0);
});

test('how much room there is costs the same, however much is queued at other stages', async ({ engine }) => {
  await engine.pipeline([
    { name: 'first', ...worked, ...heldBy('last', 20) },
    { name: 'last', needs: ['first'], ...worked },
  ]);
  const stage = await engine.value<number>(`select id from millrace.stages where name = 'first'`);
  const rows = () => planRows(engine.database.superUrl, `select millrace.room_before_later(${stage})`);
  await engine.queued('first', 50);
  await engine.sql.query('analyze millrace.attempts');
  const few = await rows();
  await engine.queued('first', 1500);
  await engine.sql.query('analyze millrace.attempts');
  // Of few, a plan may look at all.
  expect(await rows()).toBeLessThanOrEqual(few);
});
