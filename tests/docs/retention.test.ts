import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { definitionOf } from '../support/definitions.ts';
import { type Engine, test } from '../support/engine.ts';
import { testPage } from './page.ts';
import { finish, start } from './play.ts';

const open = testPage('retention');

/** A clip that has been fetched, with its raw page. */
async function fetched(engine: Engine, clips: PipelineDefinition): Promise<string> {
  const id = await engine.value<string>(
    `insert into public.clips (url) values ('https://example.com/articles/seven') returning id`,
  );
  await engine.sql.query('insert into public.raw_clips (clip_id, read_at) values ($1, millrace.now())', [id]);
  const run = await start(engine, clips, id);
  await finish(engine, clips, 'fetch');
  return run;
}

const faults = (engine: Engine, what: string) =>
  engine.value<string>('select detail from millrace.doctor() where not ok and what like $1', [what]);

test('runs go after sixty days, raw pages when the job of the page says', async ({ engine }) => {
  const page = await open(engine);
  await fetched(engine, page.exported<PipelineDefinition>('clips'));
  const shown = () => page.run(engine, 'select days, outputs_days');
  await engine.advance('61 days');
  expect(await shown()).toMatchObject([{ days: 60, outputs_days: 14, removed: null }]);
  expect(await engine.value('select millrace.prune()')).toEqual({ runs: 1, more: false });
  expect(await shown()).toMatchObject([{ days: 60, removed: '1' }]);
  expect(await page.run(engine, 'select what, ok, detail')).toMatchObject([{ ok: true }, { ok: true }]);
  await engine.sql.query(`update millrace.prune_progress set ended_at = null
    where pipeline_id = (select id from millrace.pipelines where name = 'clips')`);
  await engine.advance('25 hours');
  page.expectPromised(await faults(engine, 'pruning keeps up'));
  await engine.sql.query(`insert into millrace.sums (unit, pipeline_id, stage_id, at, outcome, n)
    select 'hour', s.pipeline_id, s.id, date_trunc('hour', millrace.now()), 'completed', 2000000
    from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id where p.name = 'clips'`);
  page.expectPromised(await faults(engine, 'history%'));

  const job = await engine.value<string>(`select command from cron.job where jobname = 'delete-old-clips'`);
  await engine.sql.query(`update public.raw_clips set read_at = now() - interval '29 days'`);
  expect(await engine.value(job)).toBe('0');
  await engine.sql.query(`update public.raw_clips set read_at = now() - interval '31 days'`);
  expect(await engine.value(job)).toBe('1');
});

test('a run is found by the beginning of its URL', async ({ engine }) => {
  const page = await open(engine);
  const run = await fetched(engine, page.exported<PipelineDefinition>('clips'));
  const [found] = await page.run(engine, 'select public.millrace_search');
  expect(found?.millrace_search).toMatchObject({
    runs: [{ run: Number(run), label: 'https://example.com/articles/seven', status: 'completed' }],
  });
  await engine.sql.query('drop index public.clips_by_url');
  page.expectPromised(await faults(engine, 'labels of pipeline clips%'));
});

test('a label that is no text is refused', async ({ engine }) => {
  const page = await open(engine);
  const definition = definitionOf<{ entity: object }>(page.exported<PipelineDefinition>('clips'));
  const changed = { ...definition, entity: { ...definition.entity, label: 'id' } };
  page.expectPromised((await engine.refusedDefinition(changed)).message);
});
