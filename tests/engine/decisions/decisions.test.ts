import { expect } from 'vitest';
import {
  defineFamily,
  folderStatuses,
  numbers,
  spawnAll,
  sweep,
  waitingFolder,
} from '../../support/engine/children.ts';
import { accept, asked, decide, reject, toReview } from '../../support/engine/decisions.ts';
import { test } from '../../support/engine.ts';
import { openTransaction, wokenStages } from '../../support/sessions.ts';
import { runStage, Worker } from '../../support/worker.ts';

test('a manual stage waits under its deadline, shows as started, and asks its question in public', async ({
  engine,
}) => {
  const [id] = await toReview(engine);
  const attempt = await asked(engine, id);
  expect(await engine.attempts(id)).toEqual(['draft 1 completed', 'review 1 waiting']);
  expect(await engine.item(id)).toMatchObject({ review_status: 'started', review_job_id: attempt });
  expect(await engine.rows('select * from public.millrace_decisions')).toEqual([
    {
      attempt_id: attempt,
      pipeline: 'flow',
      stage: 'review',
      run_id: (await engine.run(id)).id,
      entity_id: id,
      schema: expect.objectContaining({ required: ['verdict'] }),
      opened_at: await engine.now(),
      deadline_at: new Date((await engine.now()).getTime() + 3_600_000),
      decision: null,
      decided_by: null,
      decided_at: null,
      closed_at: null,
      closed_why: null,
    },
  ]);
});

test('a decision completes the attempt with the decision as its result, and what follows is queued and woken', async ({
  engine,
}) => {
  const [id] = await toReview(engine);
  await engine.configureWakeUps();
  await engine.advance('5 minutes');
  expect(await decide(engine.sql, await asked(engine, id), reject)).toBe('accepted');
  expect(await engine.item(id)).toMatchObject({
    review_status: 'completed',
    review_result: { decision: reject, decided_by: null },
    publish_status: 'queued',
  });
  expect(await wokenStages(engine)).toEqual(['flow.publish']);
  expect(
    await engine.rows('select decision, decided_at, closed_at, closed_why from public.millrace_decisions'),
  ).toEqual([
    { decision: reject, decided_at: await engine.now(), closed_at: await engine.now(), closed_why: 'decided' },
  ]);
  const item = await (await Worker.of(engine, 'publish')).takeOne();
  expect(item.needs).toEqual({ review: { decision: reject, decided_by: null } });
});

test('the last stage of a run may be a decision, which ends the run', async ({ engine }) => {
  await engine.pipeline([{ name: 'review', kind: 'manual' }]);
  const [id] = await engine.queued('review');
  expect(await decide(engine.sql, await asked(engine, id), null)).toBe('accepted');
  expect((await engine.run(id)).status).toBe('completed');
  expect(await engine.item(id)).toMatchObject({ review_result: { decision: null, decided_by: null } });
});

test('a condition reads the decision', async ({ engine }) => {
  await engine.pipeline([
    { name: 'review', kind: 'manual' },
    { name: 'publish', needs: ['review'], when: '$.needs.review.decision.verdict == "accept"' },
  ]);
  const [yes, no] = await engine.queued('review', 2);
  await decide(engine.sql, await asked(engine, yes), accept);
  await decide(engine.sql, await asked(engine, no), reject);
  expect(await engine.statuses(yes)).toEqual({ review: 'completed', publish: 'queued' });
  expect((await engine.run(no)).status).toBe('completed');
});

test('a decision in a child run lets the parent go on, and a cancelled parent closes the question', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'review', kind: 'manual' }], { projection: 'none' }, 'reviewing');
  await engine.pipeline([
    { name: 'child', kind: 'pipeline', child: { pipeline: 'reviewing' } },
    { name: 'publish', needs: ['child'] },
  ]);
  const [decided, cancelled] = await engine.queued('child', 2);
  await engine.configureWakeUps();
  await decide(engine.sql, await asked(engine, decided), accept);
  await sweep(engine);
  expect(await engine.statuses(decided)).toEqual({ child: 'completed', publish: 'queued' });
  expect(await wokenStages(engine)).toEqual(['flow.publish']);
  const parent = `select millrace.cancel(r.id) from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
    where p.name = 'flow' and r.entity_id = $1`;
  await engine.sql.query(parent, [cancelled]);
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.rows('select entity_id, closed_why from public.millrace_decisions order by attempt_id')).toEqual([
    { entity_id: decided, closed_why: 'decided' },
    { entity_id: cancelled, closed_why: 'the attempt was cancelled' },
  ]);
});

test('the last decisions on many children let their parent go on, and its own parent with it', async ({ engine }) => {
  const files = [{ name: 'check', kind: 'manual' }];
  await defineFamily(engine, {
    files,
    beside: [{ name: 'peek', after: [{ map: 'split', stage: 'check', count: 2 }] }],
  });
  await engine.pipeline([{ name: 'whole', kind: 'pipeline', child: { pipeline: 'folder' } }], {
    table: 'public.folders',
  });
  const [folder] = await engine.rows<{ id: string }>(`insert into public.folders (label) values ('one') returning id`);
  await engine.sql.query(`select millrace.start('flow', $1)`, [folder?.id]);
  await spawnAll(engine, numbers(1, 3));
  const open = await engine.rows<{ id: string }>('select attempt_id as id from public.millrace_decisions order by 1');
  for (const { id } of open.slice(0, 2)) await decide(engine.sql, id);
  await sweep(engine);
  expect(await folderStatuses(engine, folder?.id as string)).toMatchObject({ split: 'started', peek: 'queued' });
  await runStage(engine, 'peek', 'folder');
  await decide(engine.sql, open[2]?.id as string);
  for (let level = 0; level < 2; level++) await sweep(engine);
  expect(await folderStatuses(engine, folder?.id as string)).toMatchObject({ split: 'completed', whole: 'completed' });
});

test('a person who decides in a long transaction holds nobody’s parent, which the sweep lets go on', async ({
  engine,
}) => {
  const { folder } = await waitingFolder(engine, 1, { files: [{ name: 'check', kind: 'manual' }] });
  const person = await openTransaction(engine);
  await decide(person, await engine.value('select attempt_id from public.millrace_decisions'));
  await engine.sql.query('select from public.folders for update nowait');
  await person.query('commit');
  expect(await folderStatuses(engine, folder)).toEqual({ split: 'started', publish: 'pending' });
  await sweep(engine);
  expect(await folderStatuses(engine, folder)).toEqual({ split: 'completed', publish: 'queued' });
});

test('many decisions made by one statement are taken together', async ({ engine }) => {
  const ids = await toReview(engine, 5);
  await engine.sql.query('update public.millrace_decisions set decision = $1', [JSON.stringify(accept)]);
  for (const id of ids) expect(await engine.statuses(id)).toMatchObject({ review: 'completed', publish: 'queued' });
});

test('a payload that does not fit is refused with field, value and remedy, and nothing is written', async ({
  engine,
}) => {
  const [id] = await toReview(engine);
  const attempt = await asked(engine, id);
  const before = await engine.rows('select * from public.millrace_decisions');
  const faults: [unknown, RegExp][] = [
    [{ verdict: 'maybe' }, /decision\.verdict is "maybe", but must be one of "accept", "reject"/],
    [{}, /decision\.verdict is missing/],
    [{ ...accept, colour: 'red' }, /decision\.colour is not known/],
    [null, /decision is null, but must be of type object/],
  ];
  for (const [payload, message] of faults) {
    const values = [attempt, JSON.stringify(payload)];
    const refusal = await engine.refusal('select public.millrace_decide($1, $2)', values);
    expect(refusal).toMatchObject({ code: 'MR002', message: expect.stringMatching(message) });
    expect(refusal.hint).toMatch(/schema/);
  }
  expect(await engine.refusal('select public.millrace_decide($1, null)', [attempt])).toMatchObject({ code: 'MR002' });
  expect(await engine.rows('select * from public.millrace_decisions')).toEqual(before);
  expect(await engine.attempts(id)).toEqual(['draft 1 completed', 'review 1 waiting']);
});

test("a decision over the stage's size limit is refused", async ({ engine }) => {
  await engine.pipeline([{ name: 'review', kind: 'manual', result_limit_bytes: 1024 }]);
  const [id] = await engine.queued('review');
  const values = [await asked(engine, id), JSON.stringify('x'.repeat(2000))];
  expect(await engine.refusal('select public.millrace_decide($1, $2)', values)).toMatchObject({
    code: 'MR002',
    message: expect.stringMatching(/2\d{3} bytes, but the limit of stage review is 1024/),
  });
  expect(await engine.attempts(id)).toEqual(['review 1 waiting']);
});

test('the same decision told twice is a duplicate that changes nothing; another one is refused', async ({ engine }) => {
  const [id] = await toReview(engine);
  const attempt = await asked(engine, id);
  await decide(engine.sql, attempt, accept);
  const after = await engine.rows('select * from public.millrace_decisions');
  await engine.advance('1 minute');
  expect(await decide(engine.sql, attempt, accept)).toBe('duplicate');
  await engine.sql.query('update public.millrace_decisions set decision = $1', [JSON.stringify(accept)]);
  const values = [attempt, JSON.stringify(reject)];
  expect(await engine.refusal('select public.millrace_decide($1, $2)', values)).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/already decided: {"verdict": "accept"}/),
  });
  expect(await engine.rows('select * from public.millrace_decisions')).toEqual(after);
  expect(await engine.attempts(id)).toEqual(['draft 1 completed', 'review 1 completed', 'publish 1 queued']);
});

test('a decision on nothing is refused', async ({ engine }) => {
  for (const attempt of ['4711', null]) {
    expect(await engine.refusal(`select public.millrace_decide($1, '{}')`, [attempt])).toMatchObject({
      code: 'MR003',
      message: expect.stringContaining(attempt ?? 'null'),
      hint: expect.stringContaining('millrace_decisions'),
    });
  }
});

const late: [string, string, RegExp][] = [
  ['cancelled', `select millrace.cancel(id) from millrace.runs`, /the attempt was cancelled/],
  [
    'started over',
    `select millrace.start('flow', entity_id, p_restart => true) from millrace.runs`,
    /the attempt was cancelled/,
  ],
  ['deleted', 'delete from public.items', /there is no decision/],
];
for (const [what, statement, why] of late) {
  test(`a decision after the run was ${what} is refused, before and after the sweep saw it`, async ({ engine }) => {
    const [id] = await toReview(engine);
    const attempt = await asked(engine, id);
    await engine.sql.query(statement);
    for (let swept = 0; swept < 2; swept += 1) {
      const refusal = await engine.refusal('select public.millrace_decide($1, $2)', [attempt, JSON.stringify(accept)]);
      expect(refusal).toMatchObject({
        code: what === 'deleted' ? 'MR003' : 'MR004',
        message: expect.stringMatching(why),
      });
      await engine.sql.query('select millrace.sweep()');
    }
    const open = await engine.rows('select * from public.millrace_decisions where closed_at is null');
    expect(open).toEqual([]);
  });
}

test('a stage that a person decides takes no retries of its own', async ({ engine }) => {
  await expect(toReview(engine, 1, { retry: { max_attempts: 5 } })).rejects.toThrow(
    /unknown option retry.*A stage of kind manual takes/,
  );
});

test('when nobody decides before the deadline, the stage fails for good and its row is closed', async ({ engine }) => {
  const [id] = await toReview(engine);
  const attempt = await asked(engine, id);
  await engine.advance('59 minutes');
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.attempts(id)).toEqual(['draft 1 completed', 'review 1 waiting']);
  await engine.advance('2 minutes');
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.attempts(id)).toEqual(['draft 1 completed', 'review 1 failed']);
  expect((await engine.run(id)).status).toBe('failed');
  expect(await engine.item(id)).toMatchObject({ review_error: expect.stringMatching(/nobody decided before/) });
  expect(await engine.rows('select closed_at, closed_why, decision from public.millrace_decisions')).toEqual([
    { closed_at: await engine.now(), closed_why: expect.stringMatching(/nobody decided before/), decision: null },
  ]);
  const values = [attempt, JSON.stringify(accept)];
  expect(await engine.refusal('select public.millrace_decide($1, $2)', values)).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/nobody decided before/),
  });
});

test('a stage that may fail goes on without a decision', async ({ engine }) => {
  const [id] = await toReview(engine, 1, { on_failure: 'continue' });
  await engine.advance('2 hours');
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.statuses(id)).toMatchObject({ publish: 'queued' });
});

test('a retry asks anew, as an attempt that names the one before', async ({ engine }) => {
  const [id] = await toReview(engine);
  const first = await asked(engine, id);
  await engine.advance('2 hours');
  await engine.sql.query('select millrace.sweep()');
  await engine.sql.query('select millrace.retry($1)', [(await engine.run(id)).id]);
  const second = await asked(engine, id);
  expect(await engine.rows('select parent_id from millrace.attempts where id = $1', [second])).toEqual([
    { parent_id: first },
  ]);
  expect(await decide(engine.sql, second)).toBe('accepted');
  expect(await engine.statuses(id)).toMatchObject({ review: 'completed', publish: 'queued' });
});

test('a stage that starts over asks anew, whatever was decided before', async ({ engine }) => {
  const [id] = await toReview(engine);
  await decide(engine.sql, await asked(engine, id), reject);
  await engine.queue('review', [id as string]);
  const again = await asked(engine, id);
  expect(await engine.attempts(id)).toContain('review 2 waiting');
  await decide(engine.sql, again, accept);
  await runStage(engine, 'publish');
  expect(await engine.item(id)).toMatchObject({ review_result: { decision: accept }, publish_status: 'completed' });
  expect(await engine.rows('select decision from public.millrace_decisions order by attempt_id')).toEqual([
    { decision: reject },
    { decision: accept },
  ]);
});

test('the writes of the stage’s apply function commit with the decision, and its error answers the person', async ({
  engine,
}) => {
  await engine.sql.query(`
    create table public.verdicts (entity text, result jsonb);
    create function public.note_verdicts(p jsonb) returns void language plpgsql set search_path = '' as $$
    begin
      if p::text like '%reject%' then raise exception 'no rejections on Sundays'; end if;
      insert into public.verdicts select i ->> 'entity_id', i -> 'result' from jsonb_array_elements(p) i;
    end $$`);
  const [id] = await toReview(engine, 1, { apply: 'public.note_verdicts' });
  const attempt = await asked(engine, id);
  const values = [attempt, JSON.stringify(reject)];
  expect(await engine.refusal('select public.millrace_decide($1, $2)', values)).toMatchObject({
    message: 'no rejections on Sundays',
  });
  expect(await engine.attempts(id)).toEqual(['draft 1 completed', 'review 1 waiting']);
  await decide(engine.sql, attempt, accept);
  expect(await engine.rows('select * from public.verdicts')).toEqual([
    { entity: id, result: { decision: accept, decided_by: null } },
  ]);
});

test('the sweep closes the open decisions that ended, some at a time', async ({ engine }) => {
  const ids = await toReview(engine, 7);
  const [, second, third, , , , last] = ids;
  for (const id of [second, third, last]) {
    await engine.sql.query('select millrace.cancel($1)', [(await engine.run(id)).id]);
  }
  const close = () => engine.value<number>('select millrace.close_decisions(2)');
  expect([await close(), await close(), await close()]).toEqual([2, 1, 0]);
  const open = await engine.rows<{ entity_id: string }>(
    'select entity_id from public.millrace_decisions where closed_at is null order by attempt_id',
  );
  expect(open.map((row) => row.entity_id)).toEqual(ids.filter((id) => ![second, third, last].includes(id)));
});

test('an open question keeps the schema it was asked with', async ({ engine }) => {
  const [id] = await toReview(engine);
  const [other] = await toReview(engine, 1, { decision: { schema: { enum: ['yes', 'no'] } } });
  expect(await decide(engine.sql, await asked(engine, id), accept)).toBe('accepted');
  expect(await decide(engine.sql, await asked(engine, other), 'yes')).toBe('accepted');
});

test('a schema with a rule that nobody would check is refused when the pipeline is defined', async ({ engine }) => {
  await engine.pipeline([{ name: 'draft' }]);
  const decision = { schema: { properties: { verdict: { oneOf: [] } } } };
  const faulty = {
    pipeline: 'flow',
    entity: { table: 'public.items', projection: 'none' },
    stages: [{ name: 'review', kind: 'manual', decision }],
  };
  expect(await engine.refusedDefinition(faulty)).toMatchObject({
    code: 'MR001',
    message: expect.stringMatching(
      /stage review: decision\.schema\.properties\.verdict\.one_of: is not checked by the database/,
    ),
  });
});
