import { expect } from 'vitest';
import { definePipeline, type PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import type { PipelineInput } from '../../supabase/functions/_millrace/define/definition-schema.ts';
import { definitionOf } from '../support/definitions.ts';
import { type Engine, test } from '../support/engine.ts';
import { changed, messageOf, testPage } from './page.ts';
import { finish, start, states, status, sweep } from './play.ts';

const open = testPage('beginnings-and-endings');

const insert = (engine: Engine, columns = 'default values') =>
  engine.value<string>(`insert into public.papers ${columns} returning id`);

test('a paper with its text begins behind read, ends off topic, and the page tells of it', async ({ engine }) => {
  const page = await open(engine);
  const papers = page.exported<PipelineDefinition>('papers');
  const run = await start(engine, papers, await insert(engine, `(text) values ('a')`));
  expect(await states(engine, run)).toMatchObject({ read: 'skipped', rate: 'queued' });
  const [given] = await finish(engine, papers, 'rate', { score: 0.2 });
  expect(given?.needs).toEqual({ read: null });
  expect(await status(engine, run)).toBe('completed');
  expect(await states(engine, run)).toMatchObject({ rate: 'completed', publish: 'skipped', republish: 'skipped' });
  expect(await page.run(engine, 'select ended_as, count(*)')).toEqual([{ ended_as: 'off_topic', count: '1' }]);
  const timeline = await page.run(engine, 'select stage, state, error_message', { 42: run });
  expect(timeline[0]).toEqual({ stage: 'read', state: 'skipped', error_message: 'the row brought its result along' });
  expect(timeline).toContainEqual({
    stage: 'publish',
    state: 'skipped',
    error_message: 'the run ended as off_topic',
  });
});

test('the first condition that is true names the ending', async ({ engine }) => {
  const papers = (await open(engine)).exported<PipelineDefinition>('papers');
  const run = await start(engine, papers, await insert(engine, `(text, known) values ('a', true)`));
  await finish(engine, papers, 'rate', { score: 0.2 });
  expect(await engine.value('select ended_as from millrace.runs where id = $1', [run])).toBe('known');
});

test('a published paper is over until somebody revises it', async ({ engine }) => {
  const page = await open(engine);
  const papers = page.exported<PipelineDefinition>('papers');
  const id = await insert(engine);
  const run = await start(engine, papers, id);
  await finish(engine, papers, 'read');
  await finish(engine, papers, 'rate', { score: 0.9 });
  await finish(engine, papers, 'publish', { at: 'page' });
  expect(await status(engine, run)).toBe('completed');
  const early = await engine.refusal(`select millrace.start('papers', $1, 'republish')`, [id]);
  page.expectPromised(early.message);
  const [{ start: second } = {}] = await page.run(engine, `select millrace.start('papers'`, { 7: id });
  expect(await states(engine, String(second))).toMatchObject({ publish: 'completed', revise: 'waiting' });
  await engine.sql.query(`select public.millrace_decide(attempt_id, '{"ok": true}') from public.millrace_decisions`);
  await finish(engine, papers, 'republish');
  expect(await status(engine, String(second))).toBe('completed');
});

test('a paper that is due starts once, and again when it is moved on', async ({ engine }) => {
  const page = await open(engine);
  const id = await insert(engine, '(check_at) values (millrace.now())');
  await sweep(engine);
  await sweep(engine);
  expect(await engine.value('select count(*)::int from millrace.runs where entity_id = $1', [id])).toBe(1);
  expect(await page.run(engine, 'select ok, detail')).toEqual([{ ok: true, detail: 'check_at' }]);
});

test('each error of beginnings and endings has the words of its page', async ({ engine }) => {
  const page = await open(engine);
  const papers = page.exported<PipelineDefinition>('papers');
  page.expectPromised(await messageOf(() => changed(papers, 'rate', { ends: { low: '$.needs.read == 1' } })));
  page.expectPromised(await messageOf(() => changed(papers, 'revise', { when: '$.entity.known == true' })));
  const misspelt = changed(papers, 'read', { given: '$.entity.txt != null' });
  page.expectPromised(await messageOf(() => engine.define(misspelt)));
  const entity = { table: 'public.papers', key: 'id', projection: 'none' as const, due: 'url' };
  const wrong = definePipeline({ name: 'papers', entity, stages: papers.stages } as PipelineInput);
  page.expectPromised(await messageOf(() => engine.define(definitionOf(wrong))));
});
