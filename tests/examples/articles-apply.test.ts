// The effects that the results of the articles' stages become: the row, the publication and what the site is told.
import { randomUUID } from 'node:crypto';
import { describe, expect } from 'vitest';
import { chain, type Engine, type Row, projectTest as test } from '../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../support/sessions.ts';
import { completed, Worker } from '../support/worker.ts';

const text = (about: string) => Array.from({ length: 30 }, (_, index) => `${about} word ${index}.`).join('\n\n');
const found = (about: string, changes: Row = {}) => ({
  title: `About ${about}`,
  content: text(about),
  canonical_url: `https://a.test/${about}`,
  image_url: null,
  author: null,
  published_at: null,
  language: 'en',
  ...changes,
});

async function add(engine: Engine, values: Row = {}): Promise<string> {
  const row = { url: `https://feed.test/${randomUUID()}`, ...values };
  const places = Object.keys(row).map((_, index) => `$${index + 1}`);
  const insert = `insert into public.ingestion_queue (${Object.keys(row)}) values (${places}) returning id`;
  return engine.value(insert, Object.values(row));
}
const rowOf = async (engine: Engine, id: string) =>
  (await engine.rows('select * from public.ingestion_queue where id = $1', [id]))[0] as Row;
const items = (...pairs: [string, Row][]) =>
  JSON.stringify(pairs.map(([entity_id, result], index) => ({ attempt: index + 1, entity_id, result })));
const apply = (engine: Engine, stage: string, ...pairs: [string, Row][]) =>
  engine.sql.query(`select public.articles_apply_${stage}($1)`, [items(...pairs)]);

describe('fetch', () => {
  test('writes what the page says, and leaves what it does not say as the feed said it', async ({ engine }) => {
    const id = await add(engine, { title: 'From the feed', author: 'Feed', published_at: '2026-01-01T00:00:00Z' });
    await apply(engine, 'fetch', [
      id,
      found('locks', { image_url: 'https://a.test/1.jpg', published_at: '2026-03-01T09:30:00Z' }),
    ]);
    expect(await rowOf(engine, id)).toMatchObject({
      title: 'About locks',
      content: text('locks'),
      canonical_url: 'https://a.test/locks',
      image_url: 'https://a.test/1.jpg',
      author: 'Feed',
      published_at: new Date('2026-03-01T09:30:00Z'),
      language: 'en',
      duplicate_of: null,
    });
  });

  test('leaves a title that a person gave', async ({ engine }) => {
    const id = await add(engine, { title: 'Mine', entry_type: 'manual' });
    await apply(engine, 'fetch', [id, found('locks')]);
    expect(await rowOf(engine, id)).toMatchObject({ title: 'Mine', content: text('locks') });
  });

  test('finds a copy by the canonical address or by the text, within a batch too', async ({ engine }) => {
    const [first, sameAddress, sameText, other] = [
      await add(engine),
      await add(engine),
      await add(engine),
      await add(engine),
    ];
    await apply(engine, 'fetch', [first, found('locks')]);
    await apply(
      engine,
      'fetch',
      [sameAddress, found('gates', { canonical_url: 'http://www.a.test/locks/' })],
      [sameText, found('boats', { content: text('locks').toUpperCase() })],
      [other, found('bread')],
    );
    expect(await rowOf(engine, sameAddress)).toMatchObject({ duplicate_of: first });
    expect(await rowOf(engine, sameText)).toMatchObject({ duplicate_of: first });
    expect(await rowOf(engine, other)).toMatchObject({ duplicate_of: null });
    expect(await rowOf(engine, first)).toMatchObject({ duplicate_of: null });
    const [one, two] = [await add(engine), await add(engine)];
    await apply(
      engine,
      'fetch',
      [one, found('ovens')],
      [two, found('ovens', { canonical_url: 'https://b.test/copy' })],
    );
    const copies = [await rowOf(engine, one), await rowOf(engine, two)].map(({ duplicate_of }) => duplicate_of);
    expect(copies.filter(Boolean)).toHaveLength(1);
  });

  test('finds one of two copies that finish at the same time', async ({ engine }) => {
    const [one, two] = [await add(engine), await add(engine)];
    const first = await openTransaction(engine);
    const second = await openTransaction(engine);
    const call = 'select public.articles_apply_fetch($1)';
    await first.query(call, [items([one, found('locks')])]);
    const late = begin(second.query(call, [items([two, found('locks')])]));
    await untilBlocked(engine, second);
    await first.query('commit');
    await late;
    await second.query('commit');
    expect(await rowOf(engine, one)).toMatchObject({ duplicate_of: null });
    expect(await rowOf(engine, two)).toMatchObject({ duplicate_of: one });
  });

  test('finds no copy in itself when it is fetched again', async ({ engine }) => {
    const id = await add(engine);
    await apply(engine, 'fetch', [id, found('locks')]);
    await apply(engine, 'fetch', [id, found('locks', { title: 'Anew' })]);
    expect(await rowOf(engine, id)).toMatchObject({ title: 'Anew', duplicate_of: null });
  });
});

test('score keeps the score where its topic is gone', async ({ engine }) => {
  const topic = await engine.value(
    `insert into public.topic (name, description) values ('Canals', 'Locks') returning id`,
  );
  const [one, two] = [await add(engine), await add(engine)];
  await apply(engine, 'score', [one, { score: 0.5, topic_id: topic }], [two, { score: 0.25, topic_id: randomUUID() }]);
  expect(await rowOf(engine, one)).toMatchObject({ score: 0.5, topic_id: topic });
  expect(await rowOf(engine, two)).toMatchObject({ score: 0.25, topic_id: null });
});

test('enrichment writes its own columns and nothing else, in any order', async ({ engine }) => {
  const results: [string, Row][] = [
    ['summarize', { summary: 'Gates were replaced.' }],
    ['tag', { tags: ['locks', 'boats', 'canals'] }],
    ['thumbnail', { thumbnail_url: 'https://a.test/t.jpg' }],
  ];
  const orders = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ];
  const ends = new Set<string>();
  for (const order of orders) {
    const id = await add(engine, { title: 'Locks' });
    for (const place of order) await apply(engine, results[place]?.[0] ?? '', [id, results[place]?.[1] ?? {}]);
    const { title, summary, tags, thumbnail_url } = await rowOf(engine, id);
    ends.add(JSON.stringify({ title, summary, tags, thumbnail_url }));
  }
  expect([...ends].map((end) => JSON.parse(end))).toEqual([
    {
      title: 'Locks',
      summary: 'Gates were replaced.',
      tags: ['locks', 'boats', 'canals'],
      thumbnail_url: 'https://a.test/t.jpg',
    },
  ]);
});

describe('publish', () => {
  const shown = (changes: Row = {}) => ({
    slug: 'lock-gates-1',
    title: 'Lock gates',
    summary: 'Replaced.',
    tags: ['locks'],
    thumbnail_url: null,
    url: 'https://a.test/locks',
    notify: false,
    ...changes,
  });
  const publications = (engine: Engine) => engine.rows('select * from public.publication');
  const notices = (engine: Engine) => engine.rows('select * from public.site_notice order by created_at, type');

  test('writes a publication once, which anybody reads; publishing again keeps its address and its date', async ({
    engine,
  }) => {
    const id = await add(engine);
    await apply(engine, 'publish', [id, shown()]);
    const [first] = await publications(engine);
    expect(first).toMatchObject({ queue_id: id, slug: 'lock-gates-1', title: 'Lock gates', tags: ['locks'] });
    await engine.advance('1 hour');
    await apply(engine, 'publish', [id, shown({ slug: 'gates-1', title: 'Gates', tags: [] })]);
    const [again, ...more] = await publications(engine);
    expect(more).toEqual([]);
    expect(again).toMatchObject({
      id: first?.id,
      slug: 'lock-gates-1',
      title: 'Gates',
      tags: [],
      published_at: first?.published_at,
    });
    expect(Number(again?.updated_at) - Number(first?.updated_at)).toBe(3_600_000);
    const anon = await engine.database.connect('anon');
    expect((await anon.query('select title from public.publication')).rows).toEqual([{ title: 'Gates' }]);
    expect(await notices(engine)).toEqual([]);
  });

  test('puts down what the site is to be told, which a run of its own works off', async ({ engine }) => {
    const [one, two] = [await add(engine), await add(engine)];
    await apply(engine, 'publish', [one, shown({ notify: true })], [two, shown({ slug: 'other', notify: true })]);
    await apply(engine, 'publish', [one, shown({ notify: true })]);
    const types = (await notices(engine)).map(({ type, told_at }) => [type, told_at]);
    expect(types).toEqual([
      ['publication.published', null],
      ['publication.published', null],
      ['publication.updated', null],
    ]);
    const worker = await Worker.of(engine, 'tell', 'site_notices');
    const batch = await worker.take();
    expect(batch.map(({ entity }) => entity.type)).toHaveLength(3);
    expect(await worker.report(...batch.map((item) => completed(item, { told: true })))).toEqual(
      Array(3).fill('accepted'),
    );
    expect((await notices(engine)).every(({ told_at }) => told_at !== null)).toBe(true);
  });

  test('tells nothing of what is undone, and of what is deleted that it is gone', async ({ engine }) => {
    const id = await add(engine);
    await engine.sql.query('begin');
    await apply(engine, 'publish', [id, shown({ notify: true })]);
    await engine.sql.query('rollback');
    expect([await publications(engine), await notices(engine)]).toEqual([[], []]);
    expect(await (await Worker.of(engine, 'tell', 'site_notices')).take()).toEqual([]);
    await apply(engine, 'publish', [id, shown({ notify: true })]);
    const [publication] = await publications(engine);
    await engine.sql.query('delete from public.ingestion_queue where id = $1', [id]);
    const { id: publication_id, slug } = publication as Row;
    expect([await publications(engine), await notices(engine)]).toEqual([
      [],
      [expect.objectContaining({ publication_id, slug, type: 'publication.removed' })],
    ]);
    expect(await (await Worker.of(engine, 'tell', 'site_notices')).take()).toHaveLength(1);
  });
});

test('nobody who comes through the Data API calls these functions', async ({ engine }) => {
  const stages = ['fetch', 'score', 'summarize', 'tag', 'thumbnail', 'publish'];
  for (const role of ['anon', 'authenticated', 'service_role'] as const) {
    const client = await engine.database.connect(role, { sub: randomUUID() });
    for (const name of [...stages.map((stage) => `articles_apply_${stage}`), 'site_notice_told']) {
      await expect(client.query(`select public.${name}('[]')`)).rejects.toMatchObject({ code: '42501' });
    }
    if (role === 'service_role') continue;
    await expect(client.query('select from public.site_notice')).rejects.toMatchObject({ code: '42501' });
  }
});

test('a stage’s completion writes the row in its own transaction', async ({ engine }) => {
  const options = { batch_size: 5, max_workers: 2, lease_seconds: 60, timeout_seconds: 30 };
  const stages = chain(['summarize', 'tag'], { ...options, function: 'f', retry: { max_attempts: 1 } }).map(
    (stage) => ({
      ...stage,
      apply: `public.articles_apply_${stage.name}`,
    }),
  );
  const entity = { table: 'public.ingestion_queue', key: 'id', projection: 'none' };
  await engine.define({ pipeline: 'enrichment', entity, stages });
  const id = await add(engine);
  await engine.sql.query('select millrace.start($1, $2)', ['enrichment', id]);
  const worker = await Worker.of(engine, 'summarize', 'enrichment');
  expect(await worker.report(completed(await worker.takeOne(), { summary: 'Gates.' }))).toEqual(['accepted']);
  const tagger = await Worker.of(engine, 'tag', 'enrichment');
  const item = await tagger.takeOne();
  expect(item.entity).toMatchObject({ summary: 'Gates.' });
  expect(await tagger.report(completed(item, { tags: ['locks'] }))).toEqual(['accepted']);
  expect(await rowOf(engine, id)).toMatchObject({ summary: 'Gates.', tags: ['locks'] });
});
