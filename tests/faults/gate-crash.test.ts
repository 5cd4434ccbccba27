// Postgres is killed in the middle of a pass of a gate, on a server of the test's own.
import { expect, test } from 'vitest';
import { killableServer } from '../support/faults/killable-server.ts';
import { runStage } from '../support/worker.ts';

const server = killableServer('gate');

test('a pass whose server is killed is as if it had not begun, and every row passes once', async () => {
  let engine = await server.engine();
  await engine.pipeline([
    { name: 'first', batch_size: 100 },
    {
      name: 'gate',
      kind: 'gate',
      needs: ['first'],
      enabled: false,
      limits: { rate: { count: 40, per_seconds: 86_400 }, back_pressure: { stage: 'last', backlog: 30 } },
    },
    { name: 'last', needs: ['gate'], batch_size: 100 },
  ]);
  await engine.queued('first', 50);
  await runStage(engine, 'first');
  await engine.sql.query(`select millrace.unpause('flow', 'gate')`);
  const states = () =>
    engine.rows(
      `select s.name, a.state, count(*)::int as n from millrace.attempts a join millrace.stages s on s.id = a.stage_id
       where s.name <> 'first' group by 1, 2 order by 1, 2`,
    );
  const waiting = [{ name: 'gate', state: 'queued', n: 50 }];
  for (const table of ['millrace.attempts', 'millrace.pulses']) {
    engine = await server.killedWithin(engine, table, 'select millrace.sweep_gates()');
    expect(await states()).toEqual(waiting);
    await engine.expectSound();
  }
  expect(await engine.value('select millrace.sweep_gates()')).toBe(30);
  await runStage(engine, 'last');
  expect(await engine.value('select millrace.sweep_gates()'), 'no more of the rate is used up').toBe(10);
  expect(await states()).toEqual([
    { name: 'gate', state: 'queued', n: 10 },
    { name: 'gate', state: 'completed', n: 40 },
    { name: 'last', state: 'queued', n: 10 },
    { name: 'last', state: 'completed', n: 30 },
  ]);
  await engine.expectSound();
});
