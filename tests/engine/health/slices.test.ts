// The sweep checks the invariants slice by slice, round and round.
import { expect } from 'vitest';
import { type Engine, findingsTest as test } from '../../support/engine.ts';
import { completed, Worker } from '../../support/worker.ts';

const sweep = (engine: Engine) => engine.value<Record<string, unknown>>('select millrace.sweep()');
const verdict = (engine: Engine) =>
  engine.rows(`select ok, detail from millrace.doctor() where what = 'no invariant is violated'`);
const faulty = 'a completed attempt has its result, and no other has one';

/** So many runs that are over. */
async function finished(engine: Engine, count: number): Promise<void> {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only', count);
  const worker = await Worker.of(engine, 'only');
  for (let batch = await worker.take(500); batch.length > 0; ) {
    ({ batch } = await worker.complete(
      batch.map((item) => completed(item)),
      500,
    ));
  }
  await worker.leave();
}

test('the sweep finds a fault in any run within a round, reports it, and doctor tells of it until it is repaired', async ({
  engine,
}) => {
  await finished(engine, 1200);
  // Far from the newest runs, which doctor looks at itself.
  const damage = `update millrace.attempts set output = $1
    where run_id = (select id from millrace.runs order by id offset 700 limit 1) returning run_id`;
  const run = await engine.value<string>(damage, [null]);
  expect(await verdict(engine)).toMatchObject([{ ok: true, detail: expect.stringMatching(/has yet to look/) }]);
  expect(await engine.rows('select rule from millrace.check_invariants()')).toEqual([{ rule: faulty }]);
  expect(await sweep(engine)).not.toHaveProperty('faults');
  expect(await sweep(engine)).toMatchObject({ faults: 1 });
  expect(await verdict(engine)).toEqual([{ ok: false, detail: expect.stringContaining(faulty) }]);
  expect(await engine.rows(`select message, detail from millrace.log where code = 'invariant_violated'`)).toEqual([
    { message: expect.stringMatching(`faults: 1.*${faulty}: run ${run}`), detail: { runs: [Number(run)] } },
  ]);
  await sweep(engine);
  expect(await verdict(engine)).toEqual([{ ok: false, detail: expect.stringContaining(faulty) }]);
  await engine.sql.query(damage, ['1']);
  expect(await verdict(engine)).toMatchObject([{ ok: true, detail: expect.stringMatching(/last at 2026/) }]);
});

test('a round begins an hour after the last one ended, and forgets what the last one found', async ({ engine }) => {
  await finished(engine, 3);
  await engine.sql.query('begin');
  await engine.sql.query('update millrace.attempts set output = null');
  expect(await sweep(engine)).toMatchObject({ faults: 3 });
  await engine.sql.query(`update millrace.attempts set output = '1'`);
  const found = () => engine.value('select cardinality(faulty) from millrace.check_progress');
  await engine.advance('59 minutes');
  await sweep(engine);
  expect(await found()).toBe(3);
  await engine.advance('2 minutes');
  await sweep(engine);
  expect(await found()).toBe(0);
  await engine.sql.query('commit');
});

test('a slice takes in the attempts that have lost their run', async ({ engine }) => {
  await finished(engine, 3);
  await engine.sql.query('begin');
  await engine.sql.query('delete from millrace.runs where id = (select max(id) from millrace.runs)');
  expect(await sweep(engine)).toMatchObject({ faults: 1 });
  await engine.sql.query('rollback');
});

test('two sweeps at once do not check the same slice', async ({ engine }) => {
  await finished(engine, 3);
  const other = await engine.database.connect();
  await other.query('begin');
  await other.query('select millrace.go_on_checking(500)');
  expect(await engine.value('select millrace.go_on_checking(500)')).toBeNull();
  expect(await engine.value('select ended_at from millrace.check_progress')).toBeNull();
  await other.query('rollback');
});
