import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { type Engine, test } from '../support/engine.ts';
import { jobEnd } from '../support/sessions.ts';
import { type Claimed, resume, waiting } from '../support/worker.ts';
import { docsFolder, type OpenPage, testPage } from './page.ts';
import { claim, errorOf, start, sweep } from './play.ts';

const open = testPage('deadlines', docsFolder);

/** Runs of so many sites, all that may be submitted waiting for job-0, job-1, … */
async function submitted(engine: Engine, page: OpenPage, count: number) {
  const sites = page.exported<PipelineDefinition>('sites');
  for (let n = 0; n < count; n++) {
    await start(
      engine,
      sites,
      await engine.value(`insert into public.sites (url) values ('https://h.test') returning id`),
    );
  }
  const { worker, items } = await claim(engine, sites, 'crawl');
  await worker.report(...items.map((item, n) => waiting(item, `job-${n}`)));
  return { sites, worker, items };
}

async function report(engine: Engine, items: Claimed[], state: string): Promise<void> {
  const jobs = items.map(({ attempt }, n) => ({ attempt, service: 'scraper', job_id: `job-${n}`, state }));
  await engine.rows('select public.millrace_note_jobs($1)', [JSON.stringify(jobs)]);
}

test('twenty in flight, whose deadline runs from when the service runs them', async ({ engine }) => {
  const page = await open(engine);
  const { sites, items } = await submitted(engine, page, 25);
  expect(items).toHaveLength(20);
  expect((await claim(engine, sites, 'crawl')).items).toEqual([]);
  for (let minute = 0; minute < 30; minute++) {
    await engine.advance('1 minute');
    await report(engine, items, 'queued');
    await sweep(engine);
  }
  await report(engine, items.slice(0, 3), 'running');
  const busy = 'select service, count(*)';
  expect(await page.run(engine, busy)).toMatchObject([{ service: 'scraper', waiting: '20', running: '3' }]);
  await resume(engine, [jobEnd(items[0] as Claimed, 'job-0')]);
  expect((await claim(engine, sites, 'crawl')).items).toHaveLength(1);
});

test('a deadline that passes, a late result, and what figures say of it', async ({ engine }) => {
  const page = await open(engine);
  const { sites, items } = await submitted(engine, page, 4);
  const [first] = items as [Claimed];
  await report(engine, items, 'running');
  await resume(engine, [jobEnd(items[3] as Claimed, 'job-3')]);
  await engine.advance('10 minutes');
  await sweep(engine);
  page.expectPromised(await errorOf(engine, String(first.run)));
  expect(await page.run(engine, 'select completed')).toEqual([{ completed: '1', past_deadline: '3' }]);
  await engine.advance('10 seconds');
  const again = await claim(engine, sites, 'crawl');
  await again.worker.report(...again.items.map((item) => waiting(item, `again-${item.entity_id}`)));
  expect((await resume(engine, [jobEnd(first, 'job-0')])).items).toMatchObject([{ verdict: 'accepted' }]);
  expect(await page.run(engine, 'select number', { 42: first.run })).toMatchObject([
    { number: 1, state: 'failed', job_id: 'job-0' },
    { number: 2, state: 'completed', job_id: 'job-0' },
  ]);
});
