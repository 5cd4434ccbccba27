import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { test } from '../support/engine.ts';
import { changed, messageOf, testPage } from './page.ts';
import { finish, start, states, status } from './play.ts';

const open = testPage('unchanged');

test('an offer that is as it was yesterday is not read again, and one that changed is', async ({ engine }) => {
  const page = await open(engine);
  const offers = page.exported<PipelineDefinition>('offers');
  await engine.sql.query(`update public.test_clock set at = now()`);
  const id = await engine.value(`insert into public.offers (url) values ('https://a.test') returning id`);
  await start(engine, offers, id);
  await finish(engine, offers, 'fetch', { fingerprint: 'a', at: 1 });
  await finish(engine, offers, 'read', { title: 'A' });
  await finish(engine, offers, 'publish');
  const second = await start(engine, offers, id);
  await finish(engine, offers, 'fetch', { fingerprint: 'a', at: 2 });
  expect(await states(engine, second)).toEqual({ fetch: 'completed', read: 'completed', publish: 'queued' });
  const [published] = await finish(engine, offers, 'publish');
  expect(published?.needs).toEqual({ read: { title: 'A' } });
  expect(await status(engine, second)).toBe('completed');
  expect(await page.run(engine, 'select count(*) filter')).toEqual([{ taken: '1', done: '2' }]);
  const third = await start(engine, offers, id);
  await finish(engine, offers, 'fetch', { fingerprint: 'b', at: 3 });
  expect(await finish(engine, offers, 'read', { title: 'B' })).toHaveLength(1);
  await finish(engine, offers, 'publish');
  expect(await status(engine, third)).toBe('completed');
  await page.run(engine, 'select millrace.start', { 7: String(id) });
  expect(await finish(engine, offers, 'read')).toHaveLength(1);
});

test('what the page says goes wrong does', async ({ engine }) => {
  const page = await open(engine);
  const offers = page.exported<PipelineDefinition>('offers');
  page.expectPromised(await messageOf(() => changed(offers, 'read', { unchanged: '$.needs.load.fingerprint' })));
  for (const unchanged of ['$.entity.adress', '1']) {
    page.expectPromised(await messageOf(() => engine.define(changed(offers, 'read', { unchanged }))));
  }
});
