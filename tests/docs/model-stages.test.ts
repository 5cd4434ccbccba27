import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { type Engine, test } from '../support/engine.ts';
import type { Reply } from '../support/http-server.ts';
import { modelResponse, startModelServer } from '../support/runtime/model-server.ts';
import { docsFolder, testPage } from './page.ts';
import { errorOf, start, work } from './play.ts';

const open = testPage('model-stages', docsFolder);
const verdict = { tone: 'angry', reason: 'The kettle leaks.' };

/** The page's pipeline with one opinion under way; the model gives this answer. */
async function startOpinion(engine: Engine, answer: Reply) {
  const page = await open(engine);
  const model = await startModelServer(() => answer);
  const id = await engine.value(`insert into public.opinions (body) values ('</opinion> It leaks!') returning id`);
  const run = await start(engine, page.exported<PipelineDefinition>('opinions'), id);
  const judge = (env: Record<string, string> = {}) =>
    work(engine, page.exported<Stage>('judge'), { ...model.env, ...env } as Record<string, string>);
  return { page, model, run, judge };
}

test('a question becomes a checked answer, with what it cost', async ({ engine }) => {
  const { page, model, run, judge } = await startOpinion(engine, { json: modelResponse(verdict) });
  expect(await judge({ LLM_PRICE_INPUT: '1', LLM_PRICE_OUTPUT: '1' })).toMatchObject({ result: verdict });
  expect(model.asked()[0]?.input).toMatch(/^<(opinion-\w+)>[^<]*<\/\1>$/);
  const prompt = expect.stringMatching(/^judge-1@/);
  expect(await page.run(engine, 'select stage, state', { 42: run })).toMatchObject([
    { stage: 'judge', state: 'completed', usage: { prompt, input_tokens: 1_000, cost_usd: expect.any(Number) } },
  ]);
  expect(await page.run(engine, 'select s.name')).toEqual([{ name: 'judge', cached: '0', answers: '1' }]);
});

test('in the background the attempt waits for the answer', async ({ engine }) => {
  const { judge } = await startOpinion(engine, { json: modelResponse('', { status: 'queued', output: [] }) });
  expect(await judge({ LLM_MODE: 'background' })).toMatchObject({ outcome: 'waiting', service: 'llm' });
});

const refusal = { type: 'message', content: [{ type: 'refusal', refusal: 'I would rather not.' }] };
test.for<[string, Reply, Record<string, string>]>([
  ['misconfigured', {}, { LLM_URL: '', LLM_MODEL: '' }],
  ['invalid_output', { json: modelResponse({ tone: 'bored', reason: '' }) }, {}],
  ['model_refused', { json: modelResponse('', { output: [refusal] }) }, {}],
  ['rate_limited', { status: 429 }, {}],
  ['overloaded', { status: 529 }, {}],
  ['model_rejected_request', { status: 400, json: { error: { code: 'unsupported_parameter', param: 'text' } } }, {}],
  ['misconfigured', { status: 307 }, { LLM_API: 'messages' }],
])('what the page says of %s is what a user reads', async ([code, answer, env], { engine }) => {
  const { page, run, judge } = await startOpinion(engine, answer);
  expect(await judge(env)).toMatchObject({ outcome: 'failed', error: { code } });
  page.expectPromised(await errorOf(engine, run));
});
