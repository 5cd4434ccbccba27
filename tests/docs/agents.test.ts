import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { type Engine, test } from '../support/engine.ts';
import { answering, calling, scriptedModel } from '../support/runtime/agent-model.ts';
import { changed, type OpenPage, testPage } from './page.ts';
import { errorOf, start, status, work } from './play.ts';

const open = testPage('agents');

async function letter(engine: Engine, page: OpenPage) {
  const id = await engine.value(
    `insert into public.letters (pages) values ('{"Dear Sir,","Yours, Ada"}') returning id`,
  );
  return start(engine, page.exported<PipelineDefinition>('letters'), id);
}

const quotedPage = expect.stringMatching(/^<(page-\w+)>\nYours, Ada\n<\/\1>$/);

test('a retry goes on behind the last turn, and repeats no call of a tool', async ({ engine }) => {
  const page = await open(engine);
  const run = await letter(engine, page);
  const { asked, env } = await scriptedModel(
    calling(['read_page', { page: 2 }]),
    { status: 500 },
    answering({ name: 'Ada' }),
  );
  const sender = page.exported<Stage>('sender');
  expect(await work(engine, sender, env)).toMatchObject({ outcome: 'failed' });
  await engine.advance('10 minutes');
  await engine.define(changed(page.exported('letters'), 'sender', { agent: { debug: true } }));
  expect(await work(engine, sender, env)).toMatchObject({ outcome: 'completed', result: { name: 'Ada' } });
  expect(await status(engine, run)).toBe('completed');
  expect(asked()[0].input).toEqual([{ role: 'user', content: 'The letter has 2 pages.' }]);
  expect(asked()[2].input.at(-1)).toMatchObject({
    type: 'function_call_output',
    output: quotedPage,
  });
  expect(await page.run(engine, 'select seq', { 42: run })).toMatchObject([
    { kind: 'model', what: 'calls read_page' },
    {
      kind: 'tool',
      what: 'answers',
      arguments: '{"page":2}',
      output: quotedPage,
    },
    { kind: 'model', what: 'answers', output: '{"name":"Ada"}' },
  ]);
  expect(await page.run(engine, 'select sum', { 42: run })).toMatchObject([{ tokens: expect.anything() }]);
});

test('without debug the conversation is deleted when the stage is completed', async ({ engine }) => {
  const page = await open(engine);
  await engine.define(changed(page.exported('letters'), 'sender', { agent: {} }));
  await letter(engine, page);
  const { env } = await scriptedModel(answering({ name: 'Ada' }));
  expect(await work(engine, page.exported<Stage>('sender'), env)).toMatchObject({ outcome: 'completed' });
  expect(await engine.rows('select * from millrace.agent_log')).toEqual([]);
});

test('an answer that does not fit is told to the model, which may do better', async ({ engine }) => {
  const page = await open(engine);
  await letter(engine, page);
  const wrong = answering({ who: 'Ada' });
  const { env } = await scriptedModel(wrong, wrong, answering({ name: 'Ada' }));
  expect(await work(engine, page.exported<Stage>('sender'), env)).toMatchObject({ result: { name: 'Ada' } });
});

test('a model that never answers is stopped after eight turns', async ({ engine }) => {
  const page = await open(engine);
  const run = await letter(engine, page);
  const { env, received } = await scriptedModel(
    ...Array.from({ length: 9 }, () => calling(['read_page', { page: 1 }])),
  );
  const outcome = await work(engine, page.exported<Stage>('sender'), env);
  expect(outcome).toMatchObject({ error: { code: 'agent_turns_exceeded' } });
  expect(received).toHaveLength(8);
  expect(await status(engine, run)).toBe('failed');
  page.expectPromised(await errorOf(engine, run));
});

test('a limit of cost without prices is refused before anything is spent', async ({ engine }) => {
  const page = await open(engine);
  await engine.define(changed(page.exported('letters'), 'sender', { agent: { maxCostUsd: 1 } }));
  const run = await letter(engine, page);
  const { env, received } = await scriptedModel(answering({ name: 'Ada' }));
  expect(await work(engine, page.exported<Stage>('sender'), env)).toMatchObject({ error: { code: 'misconfigured' } });
  expect(received).toEqual([]);
  expect(await status(engine, run)).toBe('running');
  page.expectPromised(await errorOf(engine, run));
});
