import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { test } from '../support/engine.ts';
import { changed, messageOf, testPage } from './page.ts';
import { fail, finish, start, states, status } from './play.ts';

const open = testPage('graph');

test('a skipped and a failed stage leave null to the stage that needs both', async ({ engine }) => {
  const page = await open(engine);
  const bulletins = page.exported<PipelineDefinition>('bulletins');
  const id = await engine.value(`insert into public.bulletins (url) values ('https://a.test') returning id`);
  const run = await start(engine, bulletins, id);
  expect(await states(engine, run)).toMatchObject({ fetch: 'queued', translate: 'pending', picture: 'pending' });
  await finish(engine, bulletins, 'fetch', { language: 'en' });
  expect(await states(engine, run)).toMatchObject({ translate: 'skipped', picture: 'queued', publish: 'pending' });
  await fail(engine, bulletins, 'picture');
  const timeline = await page.run(engine, 'select stage, number', { 42: run });
  expect(timeline.filter(({ stage }) => stage === 'picture')).toMatchObject([
    { number: 1, state: 'failed', error_message: 'it is blank' },
    { number: 2, state: 'skipped' },
  ]);
  const [publish] = await finish(engine, bulletins, 'publish');
  expect(publish?.needs).toEqual({ translate: null, picture: null });
  expect(await status(engine, run)).toBe('completed');
  expect(await page.run(engine, 'select stage, state', { 42: run })).toHaveLength(4);
});

test('stages that do not need one another run side by side', async ({ engine }) => {
  const bulletins = (await open(engine)).exported<PipelineDefinition>('bulletins');
  const id = await engine.value('insert into public.bulletins default values returning id');
  const run = await start(engine, bulletins, id);
  await finish(engine, bulletins, 'fetch', { language: 'de' });
  expect(await states(engine, run)).toMatchObject({ translate: 'queued', picture: 'queued', publish: 'pending' });
  await finish(engine, bulletins, 'picture', { alt: 'a mill' });
  expect(await states(engine, run)).toMatchObject({ publish: 'pending' });
  await finish(engine, bulletins, 'translate', { text: 'a' });
  const [publish] = await finish(engine, bulletins, 'publish');
  expect(publish?.needs).toEqual({ translate: { text: 'a' }, picture: { alt: 'a mill' } });
});

test.for([
  ['skip', 'queued'],
  ['skip_dependents', 'skipped'],
] as const)('with otherwise: %s the stage after a skipped one is %s', async ([otherwise, state], { engine }) => {
  const bulletins = (await open(engine)).exported<PipelineDefinition>('bulletins');
  await engine.define(changed(bulletins, 'translate', { otherwise }));
  const id = await engine.value('insert into public.bulletins default values returning id');
  const run = await start(engine, bulletins, id);
  await finish(engine, bulletins, 'fetch', { language: 'en' });
  await finish(engine, bulletins, 'picture');
  expect(await states(engine, run)).toMatchObject({ translate: 'skipped', publish: state });
});

test('without a policy a failure for good fails the run; a field that is not there is a skip', async ({ engine }) => {
  const bulletins = (await open(engine)).exported<PipelineDefinition>('bulletins');
  await engine.define(changed(bulletins, 'picture', { onFailure: undefined }));
  const id = await engine.value('insert into public.bulletins default values returning id');
  const run = await start(engine, bulletins, id);
  await finish(engine, bulletins, 'fetch', {});
  expect(await states(engine, run)).toMatchObject({ translate: 'skipped' });
  await fail(engine, bulletins, 'picture');
  expect(await status(engine, run)).toBe('failed');
});

test('each error of graphs has the words of its page', async ({ engine }) => {
  const page = await open(engine);
  const bulletins = page.exported<PipelineDefinition>('bulletins');
  const needs = ['translate', 'pictures'];
  page.expectPromised(await messageOf(() => changed(bulletins, 'publish', { needs })));
  page.expectPromised(await messageOf(() => changed(bulletins, 'fetch', { needs: ['publish'] })));
  const elsewhere = { when: '$.needs.picture.width > 100' };
  page.expectPromised(await messageOf(() => changed(bulletins, 'translate', elsewhere)));
  const misspelt = changed(bulletins, 'translate', { when: '$.entity.lang != "en"' });
  page.expectPromised(await messageOf(() => engine.define(misspelt)));
  const unreadable = changed(bulletins, 'translate', { when: '$.needs.fetch.language =' });
  page.expectPromised(await messageOf(() => engine.define(unreadable)));
  page.expectPromised(await messageOf(() => changed(bulletins, 'publish', { otherwise: 'skip' })));
});
