import type pg from 'pg';
import { expect } from 'vitest';
import { accept, reject } from '../../support/engine/decisions.ts';
import { randomNumbers } from '../../support/engine/random-session.ts';
import { chain, type Engine, test } from '../../support/engine.ts';

const sessionCount = Number(process.env.SOAK_SESSIONS ?? 6);
const steps = Number(process.env.SOAK_STEPS ?? 40);
const entities = 12;
// The answers that the engine may answer to a call that comes too late or asks for what is not there.
const expected = ['MR003', 'MR004', 'MR005'];

async function step(person: pg.Client, roll: (limit: number) => number): Promise<void> {
  const id = roll(entities) + 1;
  const payload = JSON.stringify(roll(2) ? accept : reject);
  const newest = '(select max(attempt_id) from public.millrace_decisions where entity_id = $1)';
  const choice = roll(10);
  if (choice < 5) await person.query(`select public.millrace_decide(${newest}, $2)`, [id, payload]);
  else if (choice < 6) await person.query(`update public.items set draft_status = 'queued' where id = $1`, [id]);
  else if (choice < 7) await person.query(`update public.items set review_status = 'queued' where id = $1`, [id]);
  else if (choice < 8)
    await person.query(`select millrace.cancel(id) from millrace.runs where entity_id = $1 and status = 'running'`, [
      id,
    ]);
  else if (choice < 9) {
    await person.query('delete from public.items where id = $1', [id]);
    await person.query(`insert into public.items (id, draft_status) values ($1, 'queued') on conflict do nothing`, [
      id,
    ]);
  } else await person.query('select millrace.sweep()');
}

/** Steps of one session; resolves to the errors nobody expects. */
async function misbehave(engine: Engine, seed: number): Promise<string[]> {
  const roll = randomNumbers(seed);
  const person = await engine.database.connect();
  const troubles: string[] = [];
  for (let n = 0; n < steps; n += 1) {
    await step(person, roll).catch(({ code, message }) => {
      if (!expected.includes(code)) troubles.push(`${code}: ${message}`);
    });
  }
  return troubles;
}

test('people who decide, start over, cancel and delete at random never deadlock, and each decision counts once', async ({
  engine,
}) => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
  console.info(`seed ${seed}`);
  await engine.pipeline(chain(['draft', 'review'], { kind: 'manual' }));
  await engine.queued('draft', entities);
  const sessions = Array.from({ length: sessionCount }, (_, n) => misbehave(engine, seed + n));
  expect((await Promise.all(sessions)).flat()).toEqual([]);
  const decided = `select count(*)::int from public.millrace_decisions where closed_why = 'decided'`;
  expect(await engine.value(decided)).toBeGreaterThan(sessionCount);
  await engine.sql.query('select millrace.sweep()');
  await engine.expectSound();
  // Every completed question has its decision, every waiting one is open, every other is closed or gone.
  const lies = await engine.rows(`
    select a.id, a.state, d.decided_at, d.closed_why from millrace.attempts a
    join millrace.stages s on s.id = a.stage_id and s.kind = 'manual'
    left join public.millrace_decisions d on d.attempt_id = a.id
    where a.service = 'decision' and (a.state = 'completed') is distinct from (d.decided_at is not null)
       or a.service = 'decision' and (a.state = 'waiting') is distinct from (d.closed_at is null)
       or a.state = 'completed' and a.service = 'decision' and a.output -> 'decision' is distinct from d.decision`);
  expect(lies).toEqual([]);
  await engine.sql.query('select millrace.prune()');
  const orphans = 'select * from public.millrace_decisions where attempt_id not in (select id from millrace.attempts)';
  expect(await engine.rows(orphans)).toEqual([]);
});
