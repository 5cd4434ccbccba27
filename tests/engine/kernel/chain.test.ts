import { expect } from 'vitest';
import { chain, test } from '../../support/engine.ts';
import { runStage } from '../../support/worker.ts';

test('a chain runs stage by stage to its end, each stage reading the result of its need', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second', 'third']));
  const [id] = await engine.queued('first');
  expect(await engine.statuses(id)).toEqual({ first: 'queued', second: 'pending', third: 'pending' });
  expect((await runStage(engine, 'first'))[0]?.needs).toEqual({});
  expect((await runStage(engine, 'second'))[0]?.needs).toEqual({ first: { stage: 'first', entity: id } });
  expect((await runStage(engine, 'third'))[0]?.needs).toEqual({ second: { stage: 'second', entity: id } });
  expect((await engine.run(id)).status).toBe('completed');
  expect(await engine.statuses(id)).toEqual({ first: 'completed', second: 'completed', third: 'completed' });
});
