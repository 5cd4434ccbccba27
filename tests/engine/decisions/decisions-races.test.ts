import { expect } from 'vitest';
import { accept, asked, decide, reject, toReview } from '../../support/engine/decisions.ts';
import { test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';

const outcome = (call: Promise<string>) => call.catch((error: { code: string }) => error.code);

test('of two people who decide at once, the first one wins and the other hears so', async ({ engine }) => {
  const [id] = await toReview(engine);
  const attempt = await asked(engine, id);
  const first = await openTransaction(engine);
  expect(await decide(first, attempt, accept)).toBe('accepted');
  const [same, other] = [await engine.database.connect(), await engine.database.connect()];
  const agreed = begin(decide(same, attempt, accept));
  const objected = begin(decide(other, attempt, reject));
  await untilBlocked(engine, same);
  await untilBlocked(engine, other);
  await first.query('commit');
  expect(await outcome(agreed)).toBe('duplicate');
  expect(await outcome(objected)).toBe('MR004');
  expect(await engine.item(id)).toMatchObject({ review_result: { decision: accept }, publish_status: 'queued' });
});

test('when the first of two decisions is rolled back, the second one counts', async ({ engine }) => {
  const [id] = await toReview(engine);
  const attempt = await asked(engine, id);
  const first = await openTransaction(engine);
  await decide(first, attempt, accept);
  const second = await engine.database.connect();
  const objected = begin(decide(second, attempt, reject));
  await untilBlocked(engine, second);
  await first.query('rollback');
  expect(await outcome(objected)).toBe('accepted');
  expect(await engine.item(id)).toMatchObject({ review_result: { decision: reject } });
});

for (const projection of ['columns', 'none']) {
  test(`a decision waits for a cancel under way, and is refused once that is committed (${projection})`, async ({
    engine,
  }) => {
    const [id] = await toReview(engine, 1, {}, projection);
    const attempt = await asked(engine, id);
    const canceller = await openTransaction(engine);
    await canceller.query('select millrace.cancel($1)', [(await engine.run(id)).id]);
    const person = await engine.database.connect();
    const decision = begin(decide(person, attempt));
    await untilBlocked(engine, person);
    await canceller.query('commit');
    expect(await outcome(decision)).toBe('MR004');
    expect(await engine.attempts(id)).toEqual(['draft 1 completed', 'review 1 cancelled']);
    expect(await engine.value('select decided_at from public.millrace_decisions')).toBeNull();
  });

  test(`a cancel waits for a decision under way, and then cancels what follows (${projection})`, async ({ engine }) => {
    const [id] = await toReview(engine, 1, {}, projection);
    const person = await openTransaction(engine);
    await decide(person, await asked(engine, id));
    const canceller = await engine.database.connect();
    const cancelled = begin(canceller.query('select millrace.cancel($1)', [(await engine.run(id)).id]));
    await untilBlocked(engine, canceller);
    await person.query('commit');
    await cancelled;
    expect(await engine.attempts(id)).toEqual(['draft 1 completed', 'review 1 completed', 'publish 1 cancelled']);
  });
}

test('a decision waits for a user who holds the row', async ({ engine }) => {
  const [id] = await toReview(engine);
  const user = await openTransaction(engine);
  await user.query(`update public.items set label = 'mine' where id = $1`, [id]);
  const person = await engine.database.connect();
  const decision = begin(decide(person, await asked(engine, id)));
  await untilBlocked(engine, person);
  await user.query('commit');
  expect(await outcome(decision)).toBe('accepted');
  expect(await engine.item(id)).toMatchObject({ label: 'mine', review_status: 'completed', publish_status: 'queued' });
});

test('a decision that waits for a user who deletes the row is refused, and the sweep removes its question', async ({
  engine,
}) => {
  const [id] = await toReview(engine);
  const attempt = await asked(engine, id);
  const user = await openTransaction(engine);
  await user.query('select from public.items where id = $1 for update', [id]);
  const person = await engine.database.connect();
  const decision = begin(decide(person, attempt));
  await untilBlocked(engine, person);
  await user.query('delete from public.items where id = $1', [id]);
  await user.query('commit');
  expect(await outcome(decision)).toBe('MR004');
  expect(await engine.value('select count(*)::int from public.millrace_decisions')).toBe(1);
  // An error is told before its locks are let go: the next answer comes after both.
  await person.query('select 1');
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.value('select count(*)::int from public.millrace_decisions')).toBe(0);
});

test('the deadline passes over a run that a person is deciding on', async ({ engine }) => {
  const [id] = await toReview(engine);
  await engine.advance('2 hours');
  const person = await openTransaction(engine);
  expect(await decide(person, await asked(engine, id))).toBe('accepted');
  await engine.sql.query(`set statement_timeout = '2s'`);
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ deadlines: 0 });
  await person.query('commit');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ deadlines: 0 });
  expect(await engine.attempts(id)).toEqual(['draft 1 completed', 'review 1 completed', 'publish 1 queued']);
});

test('a decision waits for the deadline being recorded, and is refused', async ({ engine }) => {
  const [id] = await toReview(engine);
  const attempt = await asked(engine, id);
  await engine.advance('2 hours');
  const sweeper = await openTransaction(engine);
  await sweeper.query(`select millrace.sweep_overdue('deadlines', id, 10) from millrace.pipelines where name = 'flow'`);
  const person = await engine.database.connect();
  const decision = begin(decide(person, attempt));
  await untilBlocked(engine, person);
  await sweeper.query('commit');
  expect(await outcome(decision)).toBe('MR004');
  expect(await engine.attempts(id)).toEqual(['draft 1 completed', 'review 1 failed']);
});

test('a person who holds a question open holds up neither the sweep nor who cancels, deletes or starts over', async ({
  engine,
}) => {
  const ids = await toReview(engine, 3);
  const [cancelled, deleted, anew] = ids;
  const person = await openTransaction(engine);
  await person.query('select from public.millrace_decisions for update');
  await engine.sql.query(`set statement_timeout = '2s'`);
  await engine.sql.query('select millrace.cancel($1)', [(await engine.run(cancelled)).id]);
  await engine.sql.query('delete from public.items where id = $1', [deleted]);
  await engine.queue('review', [anew as string]);
  await engine.sql.query('select millrace.sweep()');
  const open = 'select entity_id from public.millrace_decisions where closed_at is null order by attempt_id';
  expect((await engine.rows(open)).map((row) => row.entity_id)).toEqual([...ids, anew]);
  await person.query('commit');
  await engine.sql.query('select millrace.sweep()');
  expect((await engine.rows(open)).map((row) => row.entity_id)).toEqual([anew]);
});

test('two people who decide many at once, in any order, neither hang nor take one twice', async ({ engine }) => {
  const ids = await toReview(engine, 20);
  const attempts: string[] = [];
  for (const id of ids) attempts.push(await asked(engine, id));
  const people = [await engine.database.connect(), await engine.database.connect()];
  const answers = await Promise.all(
    people.map(async (person, place) => {
      const verdicts: string[] = [];
      const decision = place === 0 ? accept : reject;
      for (const attempt of place === 0 ? attempts : attempts.toReversed()) {
        verdicts.push(await outcome(decide(person, attempt, decision)));
      }
      return place === 0 ? verdicts : verdicts.reverse();
    }),
  );
  attempts.forEach((_attempt, n) => {
    expect([answers[0]?.[n], answers[1]?.[n]].sort()).toEqual(['MR004', 'accepted']);
  });
  expect(await engine.value(`select count(*)::int from millrace.attempts where state = 'queued'`)).toBe(20);
});

test('a decided question that somebody answers again while its run is deleted goes with the next pruning', async ({
  engine,
}) => {
  const [id] = await toReview(engine);
  const attempt = await asked(engine, id);
  await decide(engine.sql, attempt);
  const person = await openTransaction(engine);
  expect(await decide(person, attempt)).toBe('duplicate');
  await engine.sql.query(`set statement_timeout = '2s'`);
  await engine.sql.query('delete from public.items where id = $1', [id]);
  await engine.sql.query('select millrace.prune()');
  expect(await engine.value('select count(*)::int from public.millrace_decisions')).toBe(1);
  await person.query('commit');
  await engine.sql.query('select millrace.prune()');
  expect(await engine.value('select count(*)::int from public.millrace_decisions')).toBe(0);
});
