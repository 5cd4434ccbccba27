// The migration of docs/adopting.md that renames a status column, over the articles.
import fs from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { articles as pipeline } from '../../supabase/functions/_pipelines/articles.ts';
import { complete, curatorClaims, test } from '../support/articles.ts';
import type { Row } from '../support/engine.ts';
import { completed, Worker } from '../support/worker.ts';

const page = fs.readFileSync(path.join(import.meta.dirname, '..', '..', 'docs', 'adopting.md'), 'utf8');
const renaming = /```sql\n(alter table public\.ingestion_queue rename[\s\S]*?)```/.exec(page)?.[1] ?? '';

test('a status column is renamed while runs are under way, and all goes on', async ({ articles, engine }) => {
  const { id } = await articles.insert({ url: 'https://looms.test/1', content: 'A text', entry_type: 'manual' });
  const reviewed = await articles.reviewed(310);
  const worker = await Worker.of(engine, 'summarize', 'articles');
  const [item] = await worker.take(1);
  expect((await articles.row(id)).status_code).toBe(211);

  await engine.sql.query(renaming);
  const definition = pipeline.toJson() as { entity: { status: Row } };
  definition.entity.status.column = 'code';
  await engine.rows('select millrace.define($1)', [JSON.stringify(definition)]);

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
