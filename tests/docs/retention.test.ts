import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
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

test('raw pages go after thirty days, runs after sixty, and both are told of', async ({ engine }) => {
  const page = await open(engine);
  await fetched(engine, page.exported<PipelineDefinition>('clips'));
  const shown = () => page.run(engine, 'select table_name, days, due');
  await engine.advance('31 days');
  expect(await shown()).toMatchObject([
    { table_name: null, days: 60, due: '0' },
    { table_name: 'public.raw_clips', days: 30, due: '1' },
  ]);
  expect(await engine.value('select millrace.prune()')).toEqual({ runs: 0, rows: 1, more: false });
  await engine.advance('30 days');
  expect(await engine.value('select millrace.prune()')).toEqual({ runs: 1, rows: 0, more: false });
  expect(await shown()).toMatchObject([{ due: '0', removed: '1' }, { due: '0' }]);
  expect(await page.run(engine, 'select what, ok, detail')).toMatchObject([{ ok: true }]);
  await engine.sql.query('update millrace.prune_progress set ended_at = null');
  await engine.sql.query(`delete from millrace.prune_progress where table_name <> '' or pipeline_id <>
    (select id from millrace.pipelines where name = 'clips')`);
  await engine.advance('25 hours');
  page.expectPromised(await faults(engine, 'pruning keeps up'));
});

test('a run is found by the beginning of its URL', async ({ engine }) => {
  const page = await open(engine);
  const run = await fetched(engine, page.exported<PipelineDefinition>('clips'));
  expect(await page.run(engine, 'select run_id, label, status')).toEqual([
    { run_id: run, label: 'https://example.com/articles/seven', status: 'completed' },
  ]);
  await engine.sql.query('drop index public.clips_by_url');
  page.expectPromised(await faults(engine, 'labels of pipeline clips%'));
});

test('what cannot be pruned is named', async ({ engine }) => {
  const page = await open(engine);
  const clips = page.exported<PipelineDefinition>('clips');
  await fetched(engine, clips);
  const definition = clips.toJson() as { entity: object; retention: object };
  const refused = async (changes: object) =>
    page.expectPromised(
      (await engine.refusal('select millrace.define($1)', [JSON.stringify({ ...definition, ...changes })])).message,
    );
  await refused({ retention: { tables: [{ name: 'public.clips', column: 'read_at', days: 30 }] } });
  await refused({ entity: { ...definition.entity, label: 'id' } });
  await engine.sql.query(`create function public.keep() returns trigger language plpgsql as $$ begin raise 'it is kept'; end $$;
    create trigger keep before delete on public.raw_clips for each row execute function public.keep()`);
  await engine.advance('31 days');
  await engine.sql.query('select millrace.prune()');
  page.expectPromised(await engine.value(`select message from millrace.log where code = 'row_not_pruned'`));
  await engine.sql.query('drop index public.raw_clips_by_time');
  page.expectPromised(await faults(engine, 'old rows of table%'));
});
