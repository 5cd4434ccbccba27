// A published article whose publication goes: it is live no more, and the site hears of it.
import { describe, expect } from 'vitest';
import { type Articles, curatorClaims, test } from '../support/examples/articles.ts';

const remove = 'delete from public.publication where id = $1';
const told = (articles: Articles) =>
  articles.engine.rows(
    `select n.type, n.publication_id, exists (
       select from millrace.runs r where r.entity_id = n.id::text and r.status = 'running') as told
     from public.site_notice n order by n.created_at`,
  );

test('an article whose publication is deleted waits for a review again, and the site is told once', async ({
  articles,
  engine,
}) => {
  const { id, publication } = await articles.published();
  const project = await engine.database.connect('service_role');
  await project.query(remove, [publication]);
  expect(await articles.row(id)).toMatchObject({ status_code: 300 });
  expect(await told(articles)).toEqual([{ type: 'publication.removed', publication_id: publication, told: true }]);
  await articles.move(id, 310, 330);
  await articles.publish(id);
  expect(await engine.rows('select queue_id from public.publication')).toEqual([{ queue_id: id }]);
});

describe('a curator', () => {
  test.for([400, 410])('takes an article at %i off the site by writing 300', async (code, { articles, engine }) => {
    const { id, publication } = await articles.published();
    if (code === 410) {
      await articles.move(id, 320);
      await engine.sql.query(`update public.ingestion_queue set title = 'New' where id = $1`, [id]);
      await articles.move(id, 410);
      await articles.publish(id, 'republish');
    }
    const curator = await engine.database.connect('authenticated', curatorClaims('rick'));
    await curator.query('update public.ingestion_queue set status_code = 300 where id = $1', [id]);
    expect(await engine.rows('select from public.publication')).toEqual([]);
    expect(await told(articles)).toEqual([{ type: 'publication.removed', publication_id: publication, told: true }]);
    expect((await articles.history(id)).at(-1)).toMatchObject({
      from_status: code,
      to_status: 300,
      changed_by: 'user:rick',
    });
  });
});

test('a message about a publication is not sent to the site any more once the publication is gone', async ({
  articles,
  engine,
}) => {
  const { id, publication } = await articles.published();
  await engine.sql.query(
    `insert into public.site_notice (publication_id, slug, type) values ($1, 'x', 'publication.published')`,
    [publication],
  );
  await engine.sql.query(remove, [publication]);
  expect((await told(articles)).map(({ type }) => type)).toEqual(['publication.removed']);
  expect(await articles.row(id)).toMatchObject({ status_code: 300 });
});

test('a publication that somebody edits is not deleted: saving it would publish it again', async ({
  articles,
  engine,
}) => {
  const { id, publication } = await articles.published();
  await articles.move(id, 320);
  expect(await engine.refusal(remove, [publication])).toMatchObject({
    code: 'MR005',
    message: `publication ${publication} of an article that is being edited (320) was deleted`,
    hint: expect.stringContaining('discard it (400)'),
  });
  await articles.move(id, 400);
  await engine.sql.query(remove, [publication]);
  expect(await articles.row(id)).toMatchObject({ status_code: 300 });
});

test('an article that is deleted takes its publication along, and the site is told', async ({ articles, engine }) => {
  const { id, publication } = await articles.published();
  await engine.sql.query('delete from public.ingestion_queue where id = $1', [id]);
  expect(await engine.rows('select from public.publication')).toEqual([]);
  expect(await told(articles)).toEqual([{ type: 'publication.removed', publication_id: publication, told: true }]);
});
