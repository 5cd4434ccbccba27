import { expect } from 'vitest';
import { projectTest as test } from '../support/engine.ts';
import { MemoSite } from '../support/examples/memos.ts';
import { testPage } from './page.ts';

const open = testPage('embeddings');

test('the statements of the page show memos that wait, memos that failed, and the vectors that were bought', async ({
  engine,
}) => {
  const page = await open(engine);
  const site = await new MemoSite(engine).start();
  const id = await site.add('a canal lock');
  const bodies = ['another lock'];
  site.provider.plan = async () => {
    for (const body of bodies.splice(0)) await site.edit(id, body);
    return 'answers' as const;
  };
  await site.round();
  expect(await page.run(engine, 'select count(*), min(embed_at)')).toMatchObject([{ count: '1' }]);
  const [{ entity_id, error }] = (await page.run(engine, 'select r.entity_id')) as [
    { entity_id: string; error: string },
  ];
  expect(entity_id).toBe(id);
  page.expectPromised(error);
  await site.untilDone();
  expect(await page.run(engine, 'select count(*), min(embed_at)')).toMatchObject([{ count: '0' }]);
  expect(Number((await page.run(engine, 'select sum'))[0]?.sum)).toBeGreaterThan(0);
  site.provider.makes = 768;
  await site.add('a canal gate');
  await site.round();
  page.expectPromised(
    await engine.value(`select error ->> 'message' from millrace.attempts where state = 'failed' order by id desc`),
  );
});
