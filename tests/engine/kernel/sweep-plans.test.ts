// Work for the sweep is found by look-ups, however long the queue and whatever its statistics say.
import { expect } from 'vitest';
import { planRows } from '../../support/engine/plan-rows.ts';
import { chain, test } from '../../support/engine.ts';

test('to look what there is to sweep reads no more of a long queue than of a short one', async ({ engine }) => {
  const keyed = { concurrency: { column: 'label', limit: 1 } };
  await engine.pipeline([{ name: 'gate', kind: 'gate', enabled: false }, ...chain(['one', 'two'], { limits: keyed })]);
  for (const pipeline of ['a', 'b', 'c'])
    await engine.pipeline(chain(['one', 'two'], { limits: keyed }), { projection: 'none' }, pipeline);
  const rows: number[] = [];
  for (const count of [100, 2_000]) {
    await engine.queued('gate', count);
    await engine.sql.query('vacuum analyze millrace.attempts');
    rows.push(await planRows(engine.database.superUrl, `select count(*) from millrace.to_sweep('{}')`));
  }
  expect(rows[1]).toBeLessThan((rows[0] as number) + 500);
});
