import { expect } from 'vitest';
import { atlasRun, atlasStatuses, endSheets, fold, waitingAtlas } from '../support/children.ts';
import { test } from '../support/engine.ts';

test('the rule all completes the stage when the last child has ended, with the sums as its result', async ({
  engine,
}) => {
  const { atlas, fanOut } = await waitingAtlas(engine, 3);
  await endSheets(engine, [1, 2]);
  await fold(engine);
  expect(await atlasStatuses(engine, atlas)).toEqual({ split: 'started', publish: 'pending' });
  await endSheets(engine, [3]);
  const answer = await fold(engine, [fanOut]);
  expect(answer.ring).toMatchObject([{ pipeline: 'atlas', stage: 'publish' }]);
  expect(await atlasStatuses(engine, atlas)).toEqual({ split: 'completed', publish: 'queued' });
  expect(await engine.value('select split_result from public.atlases')).toEqual({
    total: 3,
    completed: 3,
    failed: 0,
    cancelled: 0,
  });
  expect((await atlasRun(engine, atlas)).status).toBe('running');
});
