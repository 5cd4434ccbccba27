// The fast way of a batch that is uniform (record.sql) against the general one, which judges item by item.
// UNIFORM_SEED=… UNIFORM_PATH=… plays a case again.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createEngine, type Engine, type Row, type StageDefinition } from '../../support/engine.ts';
import { completed, failed, Worker } from '../../support/worker.ts';

const limits = fc.option(
  fc.constantFrom<Row>({ max_in_flight: 3 }, { concurrency: { column: 'label', part: 'value', limit: 2 } }),
  { freq: 3, nil: undefined },
);
const stage = fc.record({
  when: fc.option(fc.constantFrom('$.entity.label == "item 1"', '$.entity.label != "item 1"'), {
    freq: 3,
    nil: undefined,
  }),
  on_failure: fc.constantFrom('fail_run', 'continue'),
  sla_seconds: fc.option(fc.constant(60), { nil: undefined }),
  limits,
});
const report = fc.record({
  stage: fc.nat(3),
  size: fc.integer({ min: 1, max: 6 }),
  /** The events between the claim and the report, and whether the last item differs from the others. */
  between: fc.constantFrom('nothing', 'nothing', 'nothing', 'cancel', 'remove', 'pause'),
  last: fc.constantFrom('alike', 'alike', 'alike', 'failed', 'huge'),
});
const cases = fc.record({
  projection: fc.constantFrom('columns', 'none'),
  stages: fc.array(stage, { minLength: 1, maxLength: 4 }),
  reports: fc.array(report, { minLength: 3, maxLength: 12, size: 'max' }),
});
type Case = typeof cases extends fc.Arbitrary<infer T> ? T : never;

const contents = `
  select 'run' as what, to_jsonb(r) - '{id,trace_id}'::text[] as row from millrace.runs r
  union all
  select 'attempt', to_jsonb(a) - '{id,run_id,token,queue_at,late_at,submission_id,parent_id}'::text[]
    || jsonb_build_object('entity', r.entity_id, 'due', a.queue_at is not null, 'late', a.late_at)
  from millrace.attempts a join millrace.runs r on r.id = a.run_id
  union all
  select 'item', to_jsonb(i) from public.items i
  order by 1, 2`;

/** Plays a case, and returns the verdicts of each report with all that the database holds in the end. */
async function play(engine: Engine, { projection, stages, reports }: Case): Promise<unknown> {
  const chain = stages.map((one, place): StageDefinition => {
    const needs = place > 0 ? [`s${place - 1}`] : [];
    return JSON.parse(JSON.stringify({ name: `s${place}`, needs, result_limit_bytes: 2000, ...one }));
  });
  await engine.pipeline(chain, { projection });
  for (const id of await engine.insert(8)) await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
  const verdicts = [];
  for (const { stage: place, size, between, last } of reports) {
    const worker = await Worker.of(engine, `s${place % stages.length}`);
    const batch = await worker.take(size);
    if (batch.length === 0) continue;
    const victim = batch[0]?.entity_id;
    if (between === 'cancel') {
      await engine.sql.query(
        `select millrace.cancel(id) from millrace.runs where entity_id = $1 and status = 'running'`,
        [victim],
      );
    }
    if (between === 'remove') await engine.sql.query('delete from public.items where id::text = $1', [victim]);
    if (between === 'pause')
      await engine.sql.query(`update millrace.stages set enabled = not enabled where name = 's1'`);
    const items = batch.map((item, at) => {
      if (at < batch.length - 1 || last === 'alike') return completed(item, { ok: at });
      return last === 'failed' ? failed(item, {}) : completed(item, { text: 'x'.repeat(3000) });
    });
    const answer = await worker.complete(items);
    verdicts.push(answer.items.map(({ verdict, reason }) => [verdict, reason]));
  }
  await engine.expectSound();
  return { verdicts, contents: await engine.rows(contents) };
}

test('a uniform batch comes to the same as one that is judged item by item', async () => {
  const seed = process.env.UNIFORM_SEED ? Number(process.env.UNIFORM_SEED) : Date.now() % 1_000_000_000;
  const property = fc.asyncProperty(cases, async (one) => {
    const [fast, general] = await Promise.all([createEngine(), createEngine()]);
    await general.sql.query(`
      create or replace function millrace.lock_uniform_batch(
        p_items millrace.work[], out result_limit_bytes int, out attempt_ids bigint[], out run_ids bigint[]
      ) language plpgsql as $$ begin end $$`);
    const [got, expected] = [await play(fast, one), await play(general, one)];
    expect(got).toEqual(expected);
    await Promise.all([fast.database.drop(), general.database.drop()]);
  });
  await fc.assert(property, { numRuns: 4, seed, path: process.env.UNIFORM_PATH, endOnFailure: true });
});
