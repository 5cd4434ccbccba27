// The recipe of docs/adopting.md, word for word, over the articles: old values become codes, and a status column is renamed.

import fs from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { articles as pipeline } from '../../supabase/functions/_pipelines/articles.ts';
import { compiled, definitionOf } from '../support/definitions.ts';
import { makeAdoption } from '../support/engine/status.ts';
import type { Row } from '../support/engine.ts';
import { complete, curatorClaims, test } from '../support/examples/articles.ts';
import { completed, Worker } from '../support/worker.ts';

const page = fs.readFileSync(path.join(import.meta.dirname, '..', '..', 'docs', 'adopting.md'), 'utf8');
const following = /```sql\n(create function public\.follow_status[\s\S]*?)```/.exec(page)?.[1] ?? '';
const renaming = /```sql\n(alter table public\.ingestion_queue rename[\s\S]*?)```/.exec(page)?.[1] ?? '';

test('a status column is renamed while runs are under way, and all goes on', async ({ articles, engine }) => {
  const { id } = await articles.insert({ url: 'https://looms.test/1', content: 'A text', entry_type: 'manual' });
  const reviewed = await articles.reviewed(310);
  const worker = await Worker.of(engine, 'summarize', 'articles');
  const [item] = await worker.take(1);
  expect((await articles.row(id)).status_code).toBe(211);

  await engine.sql.query(renaming);
  const definition = definitionOf<{ entity: { status: Row } }>(pipeline);
  definition.entity.status.column = 'code';
  await engine.rows('select millrace.define($1)', [compiled(definition)]);

  await worker.report(completed(item as never, { summary: 'A summary', tokens: 1 }));
  expect((await articles.row(id)).code).toBe(220);
  const curator = await engine.database.connect('authenticated', curatorClaims('rick'));
  for (const code of [320, 330]) {
    await curator.query('update public.ingestion_queue set code = $2 where id = $1', [reviewed, code]);
  }
  expect((await articles.row(reviewed)).code).toBe(330);
  const { id: entered } = await articles.insert(complete);
  expect((await articles.row(entered)).code).toBe(300);
  const steps = await engine.rows('select to_status from public.status_history where queue_id = $1 order by id', [
    reviewed,
  ]);
  expect(steps.map(({ to_status }) => to_status)).toEqual([300, 310, 320, 330]);
});

/** The statements of the numbered steps, without what only psql knows. */
const steps = [...page.matchAll(/^ {3}```sql\n([\s\S]*?)^ {3}```/gm)].map(([, text = '']) =>
  text.replace(/ \\watch .*/, ''),
);

test('articles with words of before get their codes, and what waits begins', async ({ articles, engine }) => {
  const old = { pending: 200, queued: 200, processing: 200, enriched: 300, approved: 330, rejected: 540, failed: 500 };
  const ids = new Map<string, string>();
  for (const status of [...Object.keys(old), 'odd']) {
    const whole = ['enriched', 'approved', 'rejected'].includes(status);
    const { id } = await articles.insert({ ...(whole ? complete : { content: 'x', entry_type: 'manual' }), status });
    ids.set(status, id);
  }
  const [write, ask, adopt, begin] = steps as [string, string, string, string];
  await engine.sql.query(write);
  await makeAdoption(engine);
  const told = await engine.rows(ask);
  expect(told.map(({ old_value, value, adopted_as }) => [old_value, value, adopted_as])).toEqual(
    expect.arrayContaining([
      ['processing', '211', '200'],
      ['approved', '330', '330'],
      ['odd', null, null],
    ]),
  );
  while ((await engine.rows(adopt)).length > 0);
  const codes = async () =>
    Object.fromEntries(
      await Promise.all([...ids].map(async ([status, id]) => [status, (await articles.row(id)).status_code])),
    );
  expect(await codes()).toEqual({ ...old, odd: 200 });
  await engine.sql.query(begin);
  expect(await codes()).toEqual({ ...old, pending: 210, queued: 210, processing: 210, odd: 210 });
});

test('the old column follows by a trigger of the page, and a write to it counts as the code it means', async ({
  articles,
  engine,
}) => {
  await engine.sql.query(steps[0] as string);
  await engine.sql.query(following);
  const status = async (id: string) => {
    const row = await articles.row(id);
    return [row.status, row.status_code];
  };
  const { id } = await articles.insert({ content: 'x', entry_type: 'manual', status: 'pending' });
  expect(await status(id)).toEqual(['processing', 210]);
  const write = (value: string) =>
    engine.sql.query('update public.ingestion_queue set status = $2 where id = $1', [id, value]);
  await expect(write('approved')).rejects.toMatchObject({ code: 'MR005' });
  await engine.sql.query(`select millrace.cancel(id) from millrace.runs where entity_id = $1`, [id]);
  expect(await status(id)).toEqual(['failed', 500]);
  await engine.sql.query(
    `alter table public.ingestion_queue drop column status cascade; select millrace.attach('articles')`,
  );
  await engine.sql.query('update public.ingestion_queue set status_code = 210 where id = $1', [id]);
  expect((await articles.row(id)).status_code).toBe(210);
});
