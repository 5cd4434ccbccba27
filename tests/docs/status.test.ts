import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { definitionOf } from '../support/definitions.ts';
import { type Engine, type Row, test } from '../support/engine.ts';
import { runStage } from '../support/worker.ts';
import { messageOf, testPage } from './page.ts';

const open = testPage('status');

/** A report that waits for an editor. */
async function checked(engine: Engine): Promise<string> {
  const id = await engine.value<string>(
    `insert into public.reports (body, status_code) values ('a', 100) returning id`,
  );
  await runStage(engine, 'check', 'reports');
  return id;
}

test('an editor opens a report and accepts it by writing numbers, and all of it is in the history', async ({
  engine,
}) => {
  const page = await open(engine);
  const id = await checked(engine);
  await page.run(engine, 'update public.reports set status_code = 210', { 7: id });
  const moves = await page.run(engine, 'select to_value, means from millrace.status_moves');
  expect(moves).toEqual(expect.arrayContaining([{ to_value: '220', means: 'answer' }]));
  await page.run(engine, 'update public.reports set status_code = 220', { 7: id });
  await runStage(engine, 'send', 'reports');
  const history = await page.run(engine, 'select from_status, to_status', { 7: id });
  expect(history.map(({ to_status }) => to_status)).toEqual([100, 110, 111, 112, 200, 210, 220, 230]);
  expect(history.slice(-3).map(({ changed_by }) => changed_by)).toEqual([
    'user:postgres',
    'user:postgres',
    'agent:send',
  ]);
});

test('a value that may not be written is refused in the words of the page', async ({ engine }) => {
  const page = await open(engine);
  const id = await checked(engine);
  const write = (value: unknown) => () =>
    engine.rows('update public.reports set status_code = $2 where id = $1', [id, value]);
  for (const value of [220, 999, null]) page.expectPromised(await messageOf(write(value)));
  const late = `insert into public.reports (body, status_code) values ('a', 200)`;
  page.expectPromised(await messageOf(() => engine.rows(late)));
  await write(210)();
  await write(540)();
  expect(await engine.value('select ended_as from millrace.runs')).toBe('refused');
});

test('a value used twice and stages that are no chain are refused', async ({ engine }) => {
  const page = await open(engine);
  const reports = page.exported<PipelineDefinition>('reports');
  const define = (options: object) => () => {
    const definition = definitionOf(reports) as { stages: Row[] };
    Object.assign(definition.stages[2] ?? {}, options);
    return engine.define(definition);
  };
  const shows = { queued: 110, started: 220, completed: 230 };
  page.expectPromised(await messageOf(define({ shows })));
  page.expectPromised(await messageOf(define({ needs: [] })));
});

test('a failure shows its own value, the attempts and the error', async ({ engine }) => {
  const reports = (await open(engine)).exported<PipelineDefinition>('reports');
  expect(reports.stage('check').kind).toBe('function');
  const id = await engine.value<string>(
    `insert into public.reports (body, status_code) values ('a', 110) returning id`,
  );
  const run = await engine.value('select id from millrace.runs');
  const error = `select millrace.fail_stage($1, 'check', 'no use', true)`;
  await engine.rows(error, [run]);
  expect(await engine.rows('select status_code, tries, fault from public.reports where id = $1', [id])).toEqual([
    { status_code: 500, tries: 1, fault: 'no use' },
  ]);
});
