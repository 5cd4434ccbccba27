// Manual stages by value: what people write between question and answer, and the answers.
import { expect } from 'vitest';
import { historyOf, makeNotes, type StatusDefinition, valuesOf } from '../../support/engine/status.ts';
import { type Engine, test } from '../../support/engine.ts';
import { untilBlocked } from '../../support/sessions.ts';
import { runStage } from '../../support/worker.ts';

const code = (engine: Engine, id: string) =>
  engine.value<number>('select status_code from public.note where id = $1', [id]);
const write = (engine: Engine, id: string, value: unknown) =>
  engine.sql.query('update public.note set status_code = $2 where id = $1', [id, value]);
const refusal = (engine: Engine, id: string, value: unknown) =>
  engine.refusal('update public.note set status_code = $2 where id = $1', [id, value]);

async function atReview(engine: Engine): Promise<string> {
  const id = await engine.value<string>(`insert into public.note (status_code) values (110) returning id`);
  for (const stage of ['fetch', 'score', 'summarize', 'tag']) await runStage(engine, stage, 'notes');
  return id;
}

const question = (engine: Engine, id: string) =>
  engine.value<string>('select attempt_id from public.millrace_decisions where entity_id = $1 and closed_at is null', [
    id,
  ]);

test("steps are a person's, and an answer by value completes the question with its decision", async ({ engine }) => {
  await makeNotes(engine);
  const id = await atReview(engine);
  for (const step of [310, 320, 310, 300, 310]) await write(engine, id, step);
  await engine.expectSound();
  await write(engine, id, 330);
  expect(await engine.rows('select decision, closed_why from public.millrace_decisions')).toEqual([
    { decision: { verdict: 'approve' }, closed_why: 'decided' },
  ]);
  await runStage(engine, 'publish', 'notes');
  expect(await code(engine, id)).toBe(400);
  expect((await historyOf(engine, id)).slice(-7)).toEqual([
    '300>310 user:postgres',
    '310>320 user:postgres',
    '320>310 user:postgres',
    '310>300 user:postgres',
    '300>310 user:postgres',
    '310>330 user:postgres',
    '330>400 agent:publish',
  ]);
});

test('an answer that no follower takes up ends the run at its value', async ({ engine }) => {
  await makeNotes(engine);
  const id = await atReview(engine);
  await write(engine, id, 310);
  await write(engine, id, 340);
  expect((await engine.run(id)).status).toBe('completed');
  expect(await code(engine, id)).toBe(340);
  expect((await refusal(engine, id, 330)).code).toBe('MR005');
  await write(engine, id, 300);
  expect(await engine.attempts(id)).toContain('review 1 waiting');
  expect(await code(engine, id)).toBe(300);
});

test('the call for decisions is as it was: it shows the answer, whoever has opened it', async ({ engine }) => {
  await makeNotes(engine);
  const [approved, rejected] = [await atReview(engine), await atReview(engine)];
  await write(engine, rejected, 310);
  const service = await engine.database.connect('service_role', { app_metadata: { name: 'ann' } });
  const decide = async (id: string, verdict: string) =>
    service.query('select public.millrace_decide($1, $2)', [await question(engine, id), { verdict }]);
  await decide(approved, 'approve');
  await decide(rejected, 'reject');
  expect((await historyOf(engine, approved)).slice(-1)).toEqual(['300>330 user:ann']);
  expect((await historyOf(engine, rejected)).slice(-1)).toEqual(['310>340 user:ann']);
});

test('an answer that a step does not allow is refused, and the hint says what to write first', async ({ engine }) => {
  await makeNotes(engine);
  const id = await atReview(engine);
  expect(await refusal(engine, id, 330)).toMatchObject({
    code: 'MR005',
    message: `status_code of 1 row (${id}) cannot go from 300 to 330`,
    hint: 'Write one of 310, 320 first. From 300 people may write: 110, 120, 210, 220, 310.',
  });
  await write(engine, id, 310);
  await write(engine, id, 320);
  expect((await refusal(engine, id, 110)).hint).toMatch(/From 320 people may write: 310, 330, 340\.$/);
  await write(engine, id, 330);
  expect((await refusal(engine, id, 340)).hint).toMatch(/At 330 nobody writes/);
});

test('an answer that does not fit the schema of the decision is refused', async ({ engine }) => {
  await makeNotes(engine, (definition) => {
    const review = definition.stages[4] as unknown as { shows: { answers: Record<number, { decision: object }> } };
    (review.shows.answers[330] as { decision: object }).decision = { verdict: 'perhaps' };
  });
  const id = await atReview(engine);
  await write(engine, id, 310);
  expect((await refusal(engine, id, 330)).code).toBe('MR002');
  expect(await code(engine, id)).toBe(310);
});

test('an earlier ready value closes the question, and the next one is asked anew', async ({ engine }) => {
  await makeNotes(engine);
  const id = await atReview(engine);
  await write(engine, id, 310);
  await write(engine, id, 220);
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.rows('select closed_why from public.millrace_decisions')).toEqual([
    { closed_why: 'the attempt was cancelled' },
  ]);
  await runStage(engine, 'tag', 'notes');
  expect((await valuesOf(engine, id)).slice(-6)).toEqual([310, 220, 221, 222, 240, 300]);
  expect(await engine.attempts(id)).toContain('review 2 waiting');
});

test('a person who writes an answer waits for no decision: a decision at that moment is refused as too late', async ({
  engine,
}) => {
  await makeNotes(engine);
  const id = await atReview(engine);
  await write(engine, id, 310);
  const attempt = await question(engine, id);
  const decider = await engine.database.connect('service_role');
  const curator = await engine.database.connect();
  await curator.query(`set lock_timeout = '1s'`);
  await curator.query('begin');
  await curator.query('select from public.note where id = $1 for update', [id]);
  const decided = decider.query('select public.millrace_decide($1, $2)', [attempt, { verdict: 'reject' }]).then(
    () => 'taken',
    (error: Error) => error.message,
  );
  // The other holds the decision's row by now, and waits for the note.
  await untilBlocked(engine, decider);
  await curator.query('update public.note set status_code = 330 where id = $1', [id]);
  await curator.query('commit');
  expect(await decided).toBe(`attempt ${attempt} can no longer be decided: the attempt is completed`);
  // An error is told before its transaction has let the decision go.
  await decider.query('');
  expect(await code(engine, id)).toBe(330);
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.value('select closed_why from public.millrace_decisions')).toBe('the attempt is completed');
});

test('the first decision counts: an answer that is written then is judged by what the row shows', async ({
  engine,
}) => {
  await makeNotes(engine);
  const id = await atReview(engine);
  await write(engine, id, 310);
  const decider = await engine.database.connect('service_role');
  const curator = await engine.database.connect();
  await decider.query('begin');
  await decider.query('select public.millrace_decide($1, $2)', [await question(engine, id), { verdict: 'reject' }]);
  const written = curator.query('update public.note set status_code = 330 where id = $1', [id]).then(
    () => 'taken',
    (error: Error) => error.message,
  );
  await decider.query('commit');
  expect(await written).toBe(`status_code of 1 row (${id}) cannot go from 340 to 330`);
  expect(await code(engine, id)).toBe(340);
});

/** A chain whose last question may be taken back: who begins it comes from the published value. */
function withRevision(definition: StatusDefinition): void {
  const { status } = definition.entity as { status: Record<string, unknown> };
  (status.values as Record<string, object>).published = {
    400: ['published', 'On the site'],
    410: ['updated', 'Published again'],
  };
  status.shared = [330, 320, 410];
  status.closed = [320, 330, 400, 410];
  definition.stages.push(
    {
      name: 'revise',
      kind: 'manual',
      needs: ['publish'],
      on_demand: true,
      decision: { deadline_seconds: 86_400 },
      shows: { asked: 320, discard: true, answers: { 410: { from: [320], decision: { save: true } } } },
    },
    {
      name: 'republish',
      needs: ['revise'],
      shows: { queued: 410, started: 410, completed: 410 },
    },
  );
}

test('a question may be taken back by the value that the row had before', async ({ engine }) => {
  await makeNotes(engine, withRevision);
  const id = await atReview(engine);
  await write(engine, id, 310);
  await write(engine, id, 330);
  await runStage(engine, 'publish', 'notes');
  expect(await code(engine, id)).toBe(400);
  await write(engine, id, 320);
  expect((await refusal(engine, id, 330)).code).toBe('MR005');
  await write(engine, id, 400);
  expect((await engine.run(id)).status).toBe('completed');
  await engine.expectSound();
  await write(engine, id, 320);
  await write(engine, id, 410);
  await runStage(engine, 'republish', 'notes');
  expect(await code(engine, id)).toBe(410);
  await write(engine, id, 320);
  expect((await refusal(engine, id, 400)).code).toBe('MR005');
  await write(engine, id, 410);
  expect((await valuesOf(engine, id)).slice(-8)).toEqual([330, 400, 320, 400, 320, 410, 320, 410]);
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.value('select count(*)::int from public.millrace_decisions where closed_at is null')).toBe(0);
});

test('a run that ends under a name shows its value, and what leads on from there is listed', async ({ engine }) => {
  await makeNotes(engine, (definition) => {
    Object.assign(definition.entity.status, {
      ends: { rejected: 340, off_topic: 345 },
      moves: [[345, 120]],
      closed: [345],
    });
    Object.assign((definition.entity.status.values as { terminal: object }).terminal, {
      345: ['off_topic', 'Not ours'],
    });
    const [, score, , , review] = definition.stages;
    Object.assign(score ?? {}, { ends: [{ name: 'off_topic', when: '$.entity.label == "off"' }] });
    Object.assign(review ?? {}, { ends: [{ name: 'rejected', when: '$.result.decision.verdict == "reject"' }] });
  });
  const off = await engine.value<string>(
    `insert into public.note (label, status_code) values ('off', 110) returning id`,
  );
  const id = await atReview(engine);
  expect(await valuesOf(engine, off)).toEqual([110, 111, 112, 120, 121, 122, 345]);
  expect((await refusal(engine, off, 110)).hint).toBe('From 345 people may write: 120.');
  await write(engine, off, 120);
  await write(engine, id, 310);
  await write(engine, id, 340);
  expect(await engine.value(`select ended_as from millrace.runs where entity_id = $1`, [id])).toBe('rejected');
  expect((await refusal(engine, id, 330)).code).toBe('MR005');
  await write(engine, id, 300);
  expect((await valuesOf(engine, id)).slice(-4)).toEqual([300, 310, 340, 300]);
});

test('a new row begins by what it brings along, at a value that agrees with it', async ({ engine }) => {
  await makeNotes(engine, (definition) => {
    for (const stage of definition.stages.slice(0, 4)) stage.given = '$.entity.title != null';
  });
  const insert = (title: string | null, value: number) =>
    engine.value<string>('insert into public.note (title, status_code) values ($1, $2) returning id', [title, value]);
  const id = await insert('done', 300);
  expect(await valuesOf(engine, id)).toEqual([300]);
  const gate = await insert('done', 200);
  expect(await valuesOf(engine, gate)).toEqual([200, 300]);
  const bare = await insert(null, 100);
  expect(await valuesOf(engine, bare)).toEqual([100, 110]);
  const wrong = [null, 200] as const;
  expect(
    (await engine.refusal('insert into public.note (title, status_code) values ($1, $2)', [...wrong])).message,
  ).toMatch(/^200 cannot be written to 1 row \(\d+\): stage summarize cannot start .*its need score has no result$/);
});
