import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { test } from '../support/engine.ts';
import { Worker } from '../support/worker.ts';
import { changed, messageOf, testPage } from './page.ts';
import { claim } from './play.ts';

const open = testPage('concurrency');

test('two hundred tickets are at triage at once, and no more, by four workers of fifty', async ({ engine }) => {
  const page = await open(engine);
  const tickets = page.exported<PipelineDefinition>('tickets');
  await engine.sql.query(`insert into public.tickets (text) select 'help' from generate_series(1, 220)`);
  await engine.sql.query('select millrace.start($1, array(select id::text from public.tickets order by id))', [
    'tickets',
  ]);
  const taken = [];
  for (const _ of Array(5)) taken.push((await claim(engine, tickets, 'triage', 50)).items.length);
  expect(taken).toEqual([50, 50, 50, 50, 0]);
  expect(await page.run(engine, 'select stage, at_once, started')).toMatchObject([
    { stage: 'triage', at_once: 200, started: '200', ready: '20', row_cpu_ms: null },
    { stage: 'reply', at_once: 50 },
  ]);
});

test('where a row takes 50 ms, the engine chooses ten workers of twenty', async ({ engine }) => {
  const page = await open(engine);
  const tickets = page.exported<PipelineDefinition>('tickets');
  const worker = await Worker.of(engine, 'triage', tickets.name);
  await worker.claim(0);
  await worker.leave(true, { cpuMs: 50, bytes: 100_000 });
  expect(await page.run(engine, 'select stage, at_once, batch_size')).toEqual([
    { stage: 'triage', at_once: 200, batch_size: 20, max_workers: 10 },
    { stage: 'reply', at_once: 50, batch_size: 50, max_workers: 1 },
  ]);
});

test('each error of concurrency has the words of its page', async ({ engine }) => {
  const page = await open(engine);
  const tickets = page.exported<PipelineDefinition>('tickets');
  page.expectPromised(await messageOf(() => changed(tickets, 'triage', { batchSize: 10 })));
});
