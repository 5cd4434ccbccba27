import fc from 'fast-check';
import { expect } from 'vitest';
import {
  addChannel,
  deliver,
  minutes,
  note,
  onlyRule,
  open,
  type TakenMessage,
  take,
} from '../../support/engine/alerts.ts';
import { signIn } from '../../support/engine/operators.ts';
import { createEngine, type Engine, findingsTest as test } from '../../support/engine.ts';
import { runStage } from '../../support/worker.ts';

const backlog = { name: 'backlog', kind: 'backlog', stage: '*', above: 2, recover: '0' };

test('two sweeps at once raise one alert and write one message', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await addChannel(engine);
  await onlyRule(engine, backlog);
  await engine.queued('only', 3);
  for (let round = 0; round < 5; round++) {
    await engine.advance('1 minute');
    const sessions = [await engine.database.connect(), await engine.database.connect()];
    await Promise.all(sessions.map((session) => session.query('select millrace.evaluate_rules()')));
    for (const session of sessions) engine.database.giveBack(session);
  }
  expect(await open(engine)).toEqual(['backlog only flow']);
  expect(await deliver(engine)).toEqual(['raised backlog']);
});

test('a sweep that is undone has told nobody, and the next one tells', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await addChannel(engine);
  await onlyRule(engine, backlog);
  await engine.queued('only', 3);
  await engine.advance('1 minute');
  const session = await engine.database.connect();
  await session.query('begin');
  await session.query('select millrace.evaluate_rules()');
  await session.query('rollback');
  engine.database.giveBack(session);
  expect(await take(engine)).toEqual([]);
  await engine.sql.query('select millrace.sweep()');
  expect(await deliver(engine)).toEqual(['raised backlog']);
});

test('operators see alerts of rules and silence them, as far as they see', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await addChannel(engine);
  await onlyRule(engine, backlog);
  await engine.queued('only', 3);
  await minutes(engine, 1);
  await deliver(engine);
  const operator = await signIn(engine, 'user_1', {});
  const { alerts } = await operator.ask<{
    alerts: { id: number; kind: string; rule: string | null; message: string }[];
  }>('alerts', { open: true });
  expect(alerts).toMatchObject([{ kind: 'backlog', rule: 'backlog' }]);
  const [alert] = alerts;
  const stranger = await signIn(engine, 'user_2', { role: 'operator', pipelines: [] });
  expect(await stranger.refused('silence', { alert: alert?.id, minutes: 5, reason: 'mine' })).toMatchObject({
    code: 'MR003',
  });
  await operator.act('silence', { alert: alert?.id, minutes: 60, reason: 'it is known' });
  await runStage(engine, 'only');
  await minutes(engine, 2);
  await engine.queued('only', 4);
  await minutes(engine, 2);
  expect(await deliver(engine), 'silenced by its kind').toEqual([]);
});

/** The events that may happen in a minute: to the work, to the receiver, to the function that sends, and to the clock. */
const step = fc.record({
  work: fc.constantFrom('nothing', 'more', 'done'),
  sending: fc.constantFrom(
    'delivers',
    'fails',
    'refused for good',
    'dies',
    'dies after sending',
    'asks for time',
    'sleeps',
  ),
  clock: fc.constantFrom('goes on', 'goes on', 'goes on', 'is set back'),
});

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

async function play(engine: Engine, steps: Step[]): Promise<void> {
  await engine.pipeline([{ name: 'only' }]);
  await addChannel(engine);
  await onlyRule(engine, backlog);
  // Real minutes, whatever the clock says.
  let real = 0;
  const heard: { id: string; at: number }[] = [];
  const tell = async (taken: TakenMessage[], sending: string) => {
    for (const message of taken) {
      const before = heard.filter(({ id }) => id === message.webhook_id).at(-1);
      if (before) expect(real - before.at, 'never twice within a minute').toBeGreaterThanOrEqual(1);
      if (sending !== 'dies') heard.push({ id: message.webhook_id, at: real });
      if (sending === 'delivers') await note(engine, message, { ok: true, status: 200 });
      if (sending === 'fails') await note(engine, message, { ok: false, status: 500 });
      if (sending === 'refused for good') await note(engine, message, { ok: false, status: 400, permanent: true });
      if (sending === 'asks for time') await note(engine, message, { ok: false, status: 429, retry_after_ms: 180_000 });
    }
  };
  for (const { work, sending, clock } of steps) {
    if (work === 'more') await engine.queued('only', 3);
    if (work === 'done') await runStage(engine, 'only');
    if (clock === 'is set back') await engine.advance('-30 minutes');
    await minutes(engine, 1);
    real++;
    if (sending === 'sleeps') continue;
    await tell(await take(engine), sending);
    await tell(await take(engine), sending);
  }
  // All is well again: what was not refused for good arrives.
  await runStage(engine, 'only');
  await minutes(engine, 2);
  await engine.sql.query(
    `update millrace.alert_messages set state = 'waiting', first_tried_at = null, ended_at = null where state = 'dead'`,
  );
  for (let round = 0; round < 8; round++) {
    await engine.advance('2 hours');
    real += 120;
    for (let taken = await take(engine); taken.length > 0; taken = await take(engine)) await tell(taken, 'delivers');
  }
  expect(await engine.rows(`select state, error from millrace.alert_messages where state <> 'delivered'`)).toEqual([]);
  const told = await engine.rows<{ alert: string; events: string[] }>(
    `select e ->> 'alert' as alert, array_agg(e ->> 'event' order by m.id, e.place) as events
     from millrace.alert_messages m
     cross join lateral jsonb_array_elements(m.events) with ordinality e(e, place)
     group by 1`.replaceAll('e ->>', 'e.e ->>'),
  );
  const raised = await engine.value<number>('select count(*)::int from millrace.alerts');
  expect(told).toHaveLength(raised);
  for (const { events } of told)
    expect(events, 'each is raised once and resolved once').toEqual(['raised', 'resolved']);
}

test('random histories of work, receivers, crashes and clocks lose nothing and repeat nothing within a minute', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 15 }), async (steps) => {
      const engine = await createEngine();
      try {
        await play(engine, steps);
        await engine.expectSound();
      } finally {
        await engine.database.drop();
      }
    }),
    { numRuns: 6, endOnFailure: true },
  );
});
