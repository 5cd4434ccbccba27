// Who may do what with articles: curators by a claim of their token, other users, anon; and forged names count for nobody.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { expect } from 'vitest';
import type { Engine } from '../support/engine.ts';
import { test as base, complete, curatorClaims } from '../support/examples/articles.ts';

interface People {
  curator: pg.Client;
  user: pg.Client;
  userId: string;
  anon: pg.Client;
}

const test = base.extend<{ people: People }>({
  people: async ({ engine, articles: _ }, use) => {
    const userId = randomUUID();
    const { database } = engine;
    await use({
      curator: await database.connect('authenticated', curatorClaims('rick')),
      user: await database.connect('authenticated', { sub: userId, user_metadata: { role: 'curator' } }),
      userId,
      anon: await database.connect('anon'),
    });
  },
});

const move = (id: string, code: number) => `update public.ingestion_queue set status_code = ${code} where id = '${id}'`;
const count = async (client: pg.Client, table: string) =>
  (await client.query(`select count(*)::int from public.${table}`)).rows[0].count;

test('a curator sees all articles, edits, decides, and stands in the history by the name in the token', async ({
  articles,
  people,
}) => {
  const id = await articles.reviewed();
  for (const code of [310, 320]) await people.curator.query(move(id, code));
  await people.curator.query(`update public.ingestion_queue set title = 'New Title' where id = $1`, [id]);
  expect((await people.curator.query(move(id, 330))).rowCount).toBe(1);
  const { rows } = await people.curator.query(
    'select changed_by, to_status from public.status_history where queue_id = $1 order by id',
    [id],
  );
  expect(rows.slice(1)).toEqual([310, 320, 330].map((code) => ({ changed_by: 'user:rick', to_status: code })));
});

test('another user adds articles by hand, sees those alone, and neither moves nor edits them', async ({
  articles,
  engine,
  people: { user, userId },
}) => {
  const others = await articles.reviewed();
  const own = await articles.insert({ url: 'https://looms.test/1', entry_type: 'manual' }, user);
  expect(own).toMatchObject({ added_by: userId, status_code: 110, entered_as: 'manual' });
  expect((await user.query('select id from public.ingestion_queue')).rows).toEqual([{ id: own.id }]);
  expect((await user.query('select queue_id from public.status_history')).rows).toEqual([{ queue_id: own.id }]);
  for (const id of [own.id, others]) {
    expect((await user.query(move(id, 310))).rowCount).toBe(0);
    expect((await user.query('delete from public.ingestion_queue where id = $1', [id])).rowCount).toBe(0);
  }
  for (const entry_type of ['discovered', 'import']) {
    const values = { url: 'https://looms.test/2', entry_type };
    await expect(articles.insert(values, user)).rejects.toMatchObject({ code: '42501' });
  }
  expect(await count(user, 'topic')).toBe(0);
  expect(await engine.refusal(`insert into public.tag (name) values ('mine')`, [], user)).toMatchObject({
    code: '42501',
  });
});

test('a copy tells another user that it is one, and not of which article', async ({ articles, people: { user } }) => {
  await articles.insert({ url: 'https://looms.test/secret' });
  const copy = await articles.insert({ url: 'https://looms.test/secret', entry_type: 'manual' }, user);
  expect(copy).toMatchObject({ status_code: 520, is_copy: true, duplicate_of: null });
  expect(await count(user, 'ingestion_queue')).toBe(1);
});

test('anon reads what is published and nothing else', async ({ articles, engine, people: { anon } }) => {
  await articles.published();
  expect((await anon.query('select title, summary, tags from public.publication')).rows).toEqual([
    { title: complete.title, summary: complete.summary, tags: complete.tags },
  ]);
  for (const table of [
    'ingestion_queue',
    'status_history',
    'status_lookup',
    'article_backlog',
    'publication_edit_history',
    'topic',
    'tag',
  ]) {
    expect((await engine.refusal(`select from public.${table}`, [], anon)).code, table).toBe('42501');
  }
  expect((await engine.refusal(`update public.publication set title = 'x'`, [], anon)).code).toBe('42501');
});

test('nobody writes codes, history, publications or fingerprints through the Data API', async ({
  engine,
  articles,
  people,
}) => {
  const { id } = await articles.published();
  const project = await engine.database.connect('service_role');
  for (const client of [people.curator, people.user, project]) {
    for (const statement of [
      `insert into public.status_history (queue_id, to_status, changed_by) values ('${id}', 400, 'user:ann')`,
      `update public.status_history set changed_by = 'user:ann'`,
      'delete from public.status_history',
      `update public.status_lookup set name = 'x'`,
      'delete from public.article_fingerprint',
    ]) {
      expect((await engine.refusal(statement, [], client)).code, statement).toBe('42501');
    }
  }
  expect((await engine.refusal(`update public.publication set title = 'x'`, [], people.curator)).code).toBe('42501');
});

test('a curator cannot write what the engine and the triggers keep', async ({
  articles,
  engine,
  people: { curator },
}) => {
  await articles.reviewed();
  for (const column of [
    'entry_type',
    'entered_as',
    'status_changes',
    'status_changed_at',
    'revision',
    'added_by',
    'url_fingerprint',
    'score',
    'content',
  ]) {
    expect((await engine.refusal(`update public.ingestion_queue set ${column} = null`, [], curator)).code, column).toBe(
      '42501',
    );
  }
});

async function changedBy(engine: Engine, id: string): Promise<string> {
  return engine.value('select changed_by from public.status_history where queue_id = $1 order by id desc limit 1', [
    id,
  ]);
}

test('a name that a curator claims counts for nothing, one that the project gives does', async ({
  articles,
  engine,
  people,
}) => {
  const claim = (client: pg.Client, name: string) =>
    client.query(`select set_config('millrace.actor', $1, false)`, [name]);
  const id = await articles.reviewed();
  await claim(people.curator, 'user:ann');
  await people.curator.query(move(id, 310));
  expect(await changedBy(engine, id)).toBe('user:rick');
  const { id: queue, publication } = await articles.published();
  const track = (client: pg.Client, title: string) =>
    client.query('select public.track_publication_edit($1, $2, $3, $4, $5) as record', [
      publication,
      queue,
      {},
      { title },
      'user:ann',
    ]);
  expect((await track(people.curator, 'By Rick')).rows[0].record).toEqual(expect.any(String));
  expect(await changedBy(engine, queue)).toBe('user:rick');
  await track(await engine.database.connect('service_role'), 'By Ann');
  expect(await changedBy(engine, queue)).toBe('user:ann');
  await expect(track(people.user, 'By a stranger')).rejects.toMatchObject({ code: 'MR003' });
  await expect(track(people.anon, 'By anybody')).rejects.toMatchObject({ code: '42501' });
});

test('of two curators the second is told what became of the article', async ({
  articles,
  engine,
  people: { curator },
}) => {
  const id = await articles.reviewed(310);
  const other = await engine.database.connect('authenticated', curatorClaims('ann'));
  await curator.query('begin');
  await curator.query(move(id, 330));
  const late = engine.refusal(move(id, 540), [], other);
  await curator.query('commit');
  expect(await late).toMatchObject({ code: 'MR005' });
  expect((await other.query(`${move(id, 540)} and status_code = 310`)).rowCount).toBe(0);
  expect(await articles.row(id)).toMatchObject({ status_code: 330 });
});

test('a curator may answer by a decision too, another user may not', async ({ articles, engine, people }) => {
  const id = await articles.reviewed(310);
  const asked = 'select attempt_id from public.millrace_decisions where closed_at is null';
  expect((await people.user.query(asked)).rows).toEqual([]);
  const [question] = (await people.curator.query(asked)).rows;
  const decide = [`select public.millrace_decide($1, '{"verdict": "reject"}')`, [question.attempt_id]] as const;
  await expect(people.user.query(decide[0], [...decide[1]])).rejects.toMatchObject({ code: 'MR003' });
  await people.curator.query(decide[0], [...decide[1]]);
  expect(await articles.row(id)).toMatchObject({ status_code: 540 });
  expect(await changedBy(engine, id)).toBe('user:rick');
});
