import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { type Operator, signIn, withSecretKey } from '../support/engine/operators.ts';
import { type Engine, type Row, test } from '../support/engine.ts';
import { failed } from '../support/worker.ts';
import { type OpenPage, testPage } from './page.ts';
import { claim, start, status } from './play.ts';

const open = testPage('operators');
const act = (verb: string) => `select public.millrace_act('{"verb": "${verb}"`;

/** Answers the page's statements in an operator's session. */
const by = (operator: Operator) => ({
  rows: async <T extends Row>(statement: string) => (await operator.client.query<T>(statement)).rows,
});
const answer = async (rows: Promise<Row[]>) => Object.values((await rows)[0] ?? {})[0] as Row;

/** Postcards whose runs have failed at `print`; resolves to the runs. */
async function jammed(engine: Engine, page: OpenPage, count: number): Promise<string[]> {
  const postcards = page.exported<PipelineDefinition>('postcards');
  const runs: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const id = await engine.value(`insert into public.postcards (subject) values ('a letter') returning id`);
    runs.push(await start(engine, postcards, id));
  }
  const { worker, items } = await claim(engine, postcards, 'print');
  await worker.report(...items.map((item) => failed(item, { code: 'jammed', message: 'paper', permanent: true })));
  return runs;
}

test('an operator sees what failed and tries one again; who is none hears that', async ({ engine }) => {
  const page = await open(engine);
  const [run] = await jammed(engine, page, 2);
  const operator = await signIn(engine, 'user_2x');
  page.expectPromised((await operator.refusal('overview')).message);
  await page.run(engine, 'insert into millrace.operators');
  expect(await answer(page.run(by(operator), 'select public.millrace_dead_letters'))).toMatchObject({
    groups: [{ pipeline: 'postcards', stage: 'print', error_code: 'jammed', runs: '2' }],
  });
  expect(await answer(page.run(by(operator), act('retry'), { 42: run as string }))).toMatchObject({
    status: 'running',
  });
  expect(await page.run(engine, 'select at, coalesce(subject')).toMatchObject([
    { who: 'user_2x', verb: 'retry', runs: 1, reason: 'the printer is back' },
    { verb: 'grant' },
  ]);
  const row = await engine.value('select entity_id from millrace.runs where id = $1', [run]);
  await answer(page.run(by(operator), act('cancel'), { 7: row as string }));
  expect(await status(engine, run as string)).toBe('cancelled');
  const viewer = await signIn(engine, 'user_3y', { role: 'viewer' });
  page.expectPromised((await viewer.refused('cancel', { run: Number(run) })).message);
  page.expectPromised((await (await withSecretKey(engine)).refused('cancel', { run: Number(run) })).message);
});

test('a throttle holds for a while', async ({ engine }) => {
  const page = await open(engine);
  await page.run(engine, 'insert into millrace.operators');
  const operator = await signIn(engine, 'user_2x');
  await answer(page.run(by(operator), act('throttle')));
  expect(await page.run(engine, 'select s.name, t.limits')).toMatchObject([
    { name: 'post', limits: { rate: { count: 10, per_seconds: 60 } }, reason: 'the post office asks for less' },
  ]);
  const none = { pipeline: 'postcards', stage: 'post', minutes: 5, reason: 'none', limits: { max_in_flight: 0 } };
  page.expectPromised((await operator.refused('throttle', none)).message);
});

test('many at once: a preview, a beginning, and slices until it is done', async ({ engine }) => {
  const page = await open(engine);
  const runs = await jammed(engine, page, 3);
  await page.run(engine, 'insert into millrace.operators');
  const operator = await signIn(engine, 'user_2x');
  const seen = await answer(page.run(by(operator), act('preview')));
  expect(seen).toMatchObject({ state: 'previewed', preview: { runs: '3' } });
  const bulk = { 43: seen.bulk as number };
  await answer(page.run(by(operator), act('begin'), bulk));
  page.expectPromised((await operator.refused('begin', { bulk: seen.bulk })).message);
  expect(await page.run(engine, 'select id, state, done')).toMatchObject([{ state: 'running', done: 0 }]);
  expect(await answer(page.run(by(operator), act('continue'), bulk))).toMatchObject({ state: 'done', done: 3 });
  for (const run of runs) expect(await status(engine, run)).toBe('running');
});
