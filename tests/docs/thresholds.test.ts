import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { definitionOf } from '../support/definitions.ts';
import { type Engine, test } from '../support/engine.ts';
import { type Claimed, completed } from '../support/worker.ts';
import { changed, messageOf, type OpenPage, testPage } from './page.ts';
import { claim, finish, spawn, start, states, sweep } from './play.ts';

const open = testPage('thresholds');

/** A catalogue that was split into so many cards, all of them claimed at their first stage. */
async function splitCatalogue(engine: Engine, page: OpenPage, count: number) {
  const catalogues = page.exported<PipelineDefinition>('catalogues');
  await engine.sql.query('insert into public.catalogues values (1)');
  await engine.sql.query('insert into public.cards select generate_series(1, $1::int)', [count]);
  const run = await start(engine, catalogues, 1);
  await spawn(
    engine,
    catalogues,
    'split',
    Array.from({ length: count }, (_, n) => `${n + 1}`),
  );
  const { worker, items } = await claim(engine, page.exported('cards'), 'read');
  const read = async (from: number, to: number) => {
    const wanted = (item: Claimed) => Number(item.entity_id) >= from && Number(item.entity_id) <= to;
    await worker.report(...items.filter(wanted).map((item) => completed(item)));
    await sweep(engine);
  };
  return { run, read };
}

test('20 of any, 10 in a row and all: each stage begins at its threshold, once', async ({ engine }) => {
  const page = await open(engine);
  const { run, read } = await splitCatalogue(engine, page, 30);
  await read(11, 29);
  expect(await states(engine, run)).toMatchObject({ sample: 'pending', opening: 'pending', index: 'pending' });
  await read(30, 30);
  expect(await states(engine, run)).toMatchObject({ sample: 'queued', opening: 'pending', index: 'pending' });
  await read(1, 8);
  await read(10, 10);
  expect(await states(engine, run)).toMatchObject({ opening: 'pending', index: 'pending' });
  expect(await page.run(engine, 'select s.name', { 42: run })).toMatchObject([{ name: 'read', done: 29 }]);
  await read(9, 9);
  expect(await page.run(engine, 'select stage, state', { 42: run })).toMatchObject([
    { stage: 'split', state: 'waiting' },
    { stage: 'sample', state: 'queued' },
    { stage: 'opening', state: 'queued' },
    { stage: 'index', state: 'queued' },
  ]);
  const begun = `select count(*)::int from millrace.timeline($1) where stage <> 'split'`;
  await finish(engine, page.exported('cards'), 'file');
  expect(await engine.value(begun, [run])).toBe(3);
});

test('five cards satisfy a threshold of 20 and one of 10, once all are read', async ({ engine }) => {
  const { run, read } = await splitCatalogue(engine, await open(engine), 5);
  await read(1, 4);
  expect(await states(engine, run)).toMatchObject({ sample: 'pending', opening: 'pending' });
  await read(5, 5);
  expect(await states(engine, run)).toMatchObject({ sample: 'queued', opening: 'queued' });
});

test('a person can start a stage without waiting for its threshold', async ({ engine }) => {
  const page = await open(engine);
  const { run } = await splitCatalogue(engine, page, 2);
  await page.run(engine, 'select millrace.start_stage', { 42: run });
  expect(await states(engine, run)).toMatchObject({ sample: 'queued', opening: 'pending' });
});

test('each error of thresholds has the words of its page', async ({ engine }) => {
  const page = await open(engine);
  const catalogues = page.exported<PipelineDefinition>('catalogues');
  const after = (threshold: object) => changed(catalogues, 'sample', { after: [threshold] });
  page.expectPromised(await messageOf(() => after({ map: 'sample', stage: 'read', count: 1 })));
  page.expectPromised(await messageOf(() => after({ map: 'split', stage: 'read', count: 1, all: true })));
  const misspelt = after({ map: 'split', stage: 'reed', count: 1 });
  page.expectPromised(await messageOf(() => engine.define(misspelt)));
  const cards = definitionOf(page.exported<PipelineDefinition>('cards'));
  const stages = [{ name: 'file', function: 'cards-file' }];
  page.expectPromised(await messageOf(() => engine.define({ ...cards, stages })));
  await engine.sql.query('insert into public.catalogues values (1)');
  await start(engine, catalogues, 1);
  page.expectPromised(await messageOf(() => spawn(engine, catalogues, 'split', ['one'])));
});
