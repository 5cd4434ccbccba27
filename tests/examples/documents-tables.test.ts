// The tables of documents: who sees what, and what the stages' results become.

import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { describe, expect, test as plain } from 'vitest';
import { openPipeline } from '../../packages/test/index.ts';
import type { HandlerContext } from '../../supabase/functions/_millrace/mod.ts';
import { chunks } from '../../supabase/functions/_pipelines/chunks.ts';
import { documentMonolith } from '../../supabase/functions/_pipelines/document-monolith.ts';
import { documents } from '../../supabase/functions/_pipelines/documents.ts';
import { definitionOf } from '../support/definitions.ts';
import { type Engine, type Row, projectTest as test } from '../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../support/sessions.ts';
import { completed, Worker } from '../support/worker.ts';

const tables = ['document', 'chunk', 'kg_entity', 'kg_mention', 'kg_edge'];

async function addDocument(engine: Engine, org = 'org_red'): Promise<string> {
  return engine.value(`insert into public.document (source_path, metadata) values ($1, $2) returning id`, [
    `${org}/file.txt`,
    { clerk_org_id: org, source_name: 'file.txt' },
  ]);
}

/** A chunk as it is drafted: its id and text are made of one letter, so that the same letter is the same chunk. */
function draft(documentId: string, letter: string, ordinal: number): Row {
  const id = `${documentId.slice(0, 24)}${letter.codePointAt(0)?.toString(16).padStart(12, '0')}`;
  const [start_offset, end_offset] = [ordinal * 10, ordinal * 10 + 5];
  return {
    id,
    document_id: documentId,
    ordinal,
    text: letter,
    tokens: 1,
    start_offset,
    end_offset,
    heading: null,
    page: null,
  };
}

type Ask = (statement: string, values?: unknown[]) => Promise<unknown>;

async function draftChunks(ask: Ask, attempt: number, documentId: string, letters: string): Promise<Row[]> {
  const drafts = [...letters].map((letter, index) => draft(documentId, letter, index + 1));
  await ask(
    `insert into public.chunk_draft select $1, r.document_id, r.id, r.ordinal, r.text, r.tokens, r.start_offset, r.end_offset, r.heading, r.page
     from jsonb_populate_recordset(null::public.chunk, $2) r`,
    [attempt, JSON.stringify(drafts)],
  );
  return drafts;
}

const addDrafts = (engine: Engine, attempt: number, documentId: string, letters: string) =>
  draftChunks((...asked) => engine.rows(...asked), attempt, documentId, letters);

const applyChunks = (engine: Engine, attempt: number, documentId: string, chunks: number) =>
  engine.sql.query('select public.apply_chunks($1)', [
    JSON.stringify([{ attempt, run: 1, entity_id: documentId, result: { chunks } }]),
  ]);

/** Chunks of a document, one for each letter; returns their ids. */
async function addChunks(engine: Engine, documentId: string, letters: string): Promise<string[]> {
  const drafts = await addDrafts(engine, 1, documentId, letters);
  await applyChunks(engine, 1, documentId, drafts.length);
  return drafts.map((row) => row.id as string);
}

/** Entities by their names, and relations as "source relation target". */
function facts(names: string[], relations: string[] = []): Row {
  return {
    entities: names.map((name) => ({ name, type: 'other', description: `${name} is named.` })),
    relations: relations.map((text) => {
      const [source, relation, target] = text.split(' ');
      return { source, relation, target, fact: `${text}.` };
    }),
  };
}

const applyFacts = (client: pg.Client, said: Record<string, Row>) =>
  client.query('select public.apply_facts($1)', [
    JSON.stringify(Object.entries(said).map(([entity_id, result]) => ({ attempt: 1, run: 1, entity_id, result }))),
  ]);

const mentions = async (engine: Engine) =>
  (
    await engine.rows<{ said: string }>(
      `select c.text || ': ' || m.name || ' = ' || e.key as said from public.kg_mention m
       join public.chunk c on c.id = m.chunk_id join public.kg_entity e on e.id = m.entity_id order by 1`,
    )
  ).map((row) => row.said);

describe('row-level security', () => {
  const seen = async (client: pg.Client, statement: string) => (await client.query(statement)).rows;

  test('shows each organisation its own documents, chunks, facts and files, and nothing else', async ({ engine }) => {
    const own: Record<string, { id: string; chunk: string }> = {};
    for (const org of ['org_red', 'org_blue']) {
      const id = await addDocument(engine, org);
      const [chunk = ''] = await addChunks(engine, id, 'a');
      await applyFacts(engine.sql, { [chunk]: facts(['Ada', 'Bob', `Only ${org}`], ['Ada met Bob']) });
      await addDrafts(engine, 2, id, 'b');
      await engine.sql.query(
        `insert into storage.objects (bucket_id, name) values ('documents', $1), ('extracted_text', $2)`,
        [`${org}/file.txt`, `${id}.txt`],
      );
      own[org] = { id, chunk };
    }
    await engine.sql.query(`insert into storage.objects (bucket_id, name) values ('extracted_text', 'nobody.txt')`);
    for (const [org, { id, chunk }] of Object.entries(own)) {
      // Clerk's first form of a token and its second.
      for (const claims of [{ org_id: org }, { o: { id: org } }, { app_metadata: { clerk_org_id: org } }]) {
        const client = await engine.database.connect('authenticated', { sub: randomUUID(), ...claims });
        expect(await seen(client, 'select id, clerk_org_id from public.document')).toEqual([{ id, clerk_org_id: org }]);
        expect(await seen(client, 'select document_id from public.chunk')).toEqual([{ document_id: id }]);
        expect(await seen(client, 'select clerk_org_id, key from public.kg_entity order by id')).toEqual([
          { clerk_org_id: org, key: 'ada' },
          { clerk_org_id: org, key: 'bob' },
          { clerk_org_id: org, key: `only ${org.replace('_', ' ')}` },
        ]);
        const names = ['Ada', 'Bob', `Only ${org}`].map((name) => ({ chunk_id: chunk, name }));
        expect(await seen(client, 'select chunk_id, name from public.kg_mention order by name')).toEqual(names);
        const edges = [{ chunk_id: chunk, fact: 'Ada met Bob.' }];
        expect(await seen(client, 'select chunk_id, fact from public.kg_edge')).toEqual(edges);
        const files = await seen(client, 'select bucket_id, name from storage.objects order by bucket_id');
        expect(files).toEqual([
          { bucket_id: 'documents', name: `${org}/file.txt` },
          { bucket_id: 'extracted_text', name: `${id}.txt` },
        ]);
        await expect(client.query('select from public.chunk_draft')).rejects.toMatchObject({ code: '42501' });
      }
    }
  });

  test('shows the text of a document that is gone to nobody, not even to whoever takes its id', async ({ engine }) => {
    const id = await addDocument(engine, 'org_red');
    await engine.sql.query(
      `insert into storage.objects (bucket_id, name, updated_at) values ('extracted_text', $1, now() - interval '1 second')`,
      [`${id}.txt`],
    );
    await engine.sql.query('delete from public.document where id = $1', [id]);
    const user = await engine.database.connect('authenticated', { sub: randomUUID(), org_id: 'org_blue' });
    await user.query(`insert into public.document (id, source_path, metadata) values ($1, $2, $3)`, [
      id,
      'org_blue/file.txt',
      { clerk_org_id: 'org_blue' },
    ]);
    expect(await seen(user, 'select name from storage.objects')).toEqual([]);
    await engine.sql.query('update storage.objects set updated_at = clock_timestamp()');
    expect(await seen(user, 'select name from storage.objects')).toEqual([{ name: `${id}.txt` }]);
  });

  test('shows nothing to a user without an organisation, and nothing at all to nobody', async ({ engine }) => {
    const id = await addDocument(engine);
    const [chunk = ''] = await addChunks(engine, id, 'a');
    await applyFacts(engine.sql, { [chunk]: facts(['Ada', 'Bob'], ['Ada met Bob']) });
    const claims = { sub: randomUUID(), user_metadata: { clerk_org_id: 'org_red' } };
    const stranger = await engine.database.connect('authenticated', claims);
    const anon = await engine.database.connect('anon');
    for (const table of tables) {
      expect(await seen(stranger, `select from public.${table}`)).toEqual([]);
      await expect(anon.query(`select from public.${table}`)).rejects.toMatchObject({ code: '42501' });
    }
  });

  test('takes no more metadata than a run may have', async ({ engine }) => {
    const insert = 'insert into public.document (source_path, metadata) values ($1, $2)';
    const withNoise = (bytes: number) => ['org_red/a.txt', { clerk_org_id: 'org_red', noise: '.'.repeat(bytes) }];
    expect(await engine.refusal(insert, withNoise(65_536))).toMatchObject({
      code: '23514',
      message: expect.stringContaining('document_metadata_length'),
    });
    await engine.sql.query(insert, withNoise(65_000));
  });

  test('lets users write their documents’ inputs into their own organisation, and no result', async ({ engine }) => {
    const theirs = await addDocument(engine, 'org_blue');
    const user = await engine.database.connect('authenticated', { sub: randomUUID(), org_id: 'org_red' });
    const insert = 'insert into public.document (source_path, metadata) values ($1, $2) returning id';
    const { rows } = await user.query(insert, ['org_red/a.txt', { clerk_org_id: 'org_red' }]);
    const foreign = ['org_blue/a.txt', { clerk_org_id: 'org_blue' }];
    expect(await engine.refusal(insert, foreign, user)).toMatchObject({ code: '42501' });
    const move = `update public.document set metadata = '{"clerk_org_id": "org_blue"}', source_path = 'org_blue/a.txt'`;
    expect(await engine.refusal(move, [], user)).toMatchObject({ code: '42501' });
    for (const change of [
      `update public.document set chunking_result = '{}'`,
      `update public.document set monolith_result = '{}'`,
      `insert into public.chunk select * from public.chunk`,
      `delete from public.chunk`,
      `delete from public.kg_entity`,
      `update public.kg_edge set fact = 'no'`,
    ]) {
      expect(await engine.refusal(change, [], user)).toMatchObject({ code: '42501' });
    }
    expect((await user.query('delete from public.document')).rowCount).toBe(1);
    expect(await engine.rows('select id from public.document')).toEqual([{ id: theirs }]);
    expect(rows).toHaveLength(1);
  });

  test('lets users queue each phase, but leaves the choice of the old way to the flag', async ({ engine }) => {
    for (const pipeline of [documentMonolith, chunks, documents]) await engine.define(definitionOf(pipeline));
    await engine.sql.query('update public.document_way set share = 1');
    const id = await addDocument(engine);
    const user = await engine.database.connect('authenticated', { sub: randomUUID(), org_id: 'org_red' });
    for (const status of ['queued', 'pending']) {
      const oldWay = 'update public.document set monolith_status = $1';
      expect(await engine.refusal(oldWay, [status], user)).toMatchObject({ code: '42501' });
    }
    expect(await engine.rows('select from millrace.runs')).toEqual([]);
    await user.query(`update public.document set extraction_status = 'queued'`);
    expect(
      await engine.rows(
        'select p.name, r.entity_id from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id',
      ),
    ).toEqual([{ name: 'documents', entity_id: id }]);
    await user.query(`update public.document set chunking_status = 'pending', kg_ingest_status = 'pending'`);
  });

  test('lets users put files into their own folder alone, and none among the extracted texts', async ({ engine }) => {
    const user = await engine.database.connect('authenticated', { sub: randomUUID(), org_id: 'org_red' });
    const upload = 'insert into storage.objects (bucket_id, name) values ($1, $2)';
    await user.query(upload, ['documents', 'org_red/a.txt']);
    for (const place of [
      ['documents', 'org_blue/a.txt'],
      ['documents', 'a.txt'],
      ['extracted_text', `${await addDocument(engine)}.txt`],
    ]) {
      expect(await engine.refusal(upload, place, user)).toMatchObject({ code: '42501' });
    }
  });
});

describe('chunks', () => {
  const chunkRows = (engine: Engine) =>
    engine.rows('select text, ordinal, start_offset from public.chunk order by ordinal');

  test('that are the same stay with their facts, those that are gone go with theirs', async ({ engine }) => {
    const id = await addDocument(engine);
    const [a = '', b = '', c = ''] = await addChunks(engine, id, 'abc');
    await applyFacts(engine.sql, { [a]: facts(['Ada']), [b]: facts(['Bob']), [c]: facts(['Cy', 'Di'], ['Cy met Di']) });
    const edges = await engine.rows('select * from public.kg_edge');
    const versions = 'select xmin::text from public.chunk where id = any ($1) order by id';
    const before = await engine.rows(versions, [[a, c]]);

    await addDrafts(engine, 2, id, 'axc');
    await applyChunks(engine, 2, id, 3);
    expect(await chunkRows(engine)).toEqual([
      { text: 'a', ordinal: 1, start_offset: 10 },
      { text: 'x', ordinal: 2, start_offset: 20 },
      { text: 'c', ordinal: 3, start_offset: 30 },
    ]);
    expect(await engine.rows(versions, [[a, c]])).toEqual(before);
    expect(await mentions(engine)).toEqual(['a: Ada = ada', 'c: Cy = cy', 'c: Di = di']);
    expect(await engine.rows('select * from public.kg_edge')).toEqual(edges);

    await addDrafts(engine, 3, id, 'ca');
    await applyChunks(engine, 3, id, 2);
    expect(await chunkRows(engine)).toEqual([
      { text: 'c', ordinal: 1, start_offset: 10 },
      { text: 'a', ordinal: 2, start_offset: 20 },
    ]);
    expect(await mentions(engine)).toEqual(['a: Ada = ada', 'c: Cy = cy', 'c: Di = di']);
  });

  test('of another attempt never show', async ({ engine }) => {
    const id = await addDocument(engine);
    const other = await addDocument(engine);
    await addDrafts(engine, 1, id, 'old');
    await addDrafts(engine, 2, id, 'ab');
    await addDrafts(engine, 3, other, 'z');
    await applyChunks(engine, 2, id, 2);
    expect((await chunkRows(engine)).map((row) => row.text)).toEqual(['a', 'b']);
    expect(await engine.rows('select attempt_id from public.chunk_draft')).toEqual([{ attempt_id: '3' }]);
  });

  test('take effect together with the completion', async ({ engine }) => {
    for (const pipeline of [documentMonolith, chunks, documents]) await engine.define(definitionOf(pipeline));
    await engine.sql.query('update public.document_way set share = 1');
    const id = await addDocument(engine);
    await engine.sql.query(`update public.document set extraction_status = 'queued' where id = $1`, [id]);
    const extraction = await Worker.of(engine, 'extraction', 'documents');
    await extraction.complete([completed(await extraction.takeOne(), { by: 'plain_text' })]);
    const worker = await Worker.of(engine, 'chunking', 'documents');
    const item = await worker.takeOne();
    await addDrafts(engine, item.attempt, id, 'ab');
    await worker.client.query('begin');
    await worker.complete([completed(item, { chunks: 2, tokens: 2, output_location: 'chunk' })]);
    expect(await chunkRows(engine)).toEqual([]);
    await worker.client.query('rollback');
    expect(await chunkRows(engine)).toEqual([]);
  });
});

describe('a document in its pipeline', () => {
  const text = { text_location: 'extracted_text/x.txt', text_sha256: '0'.repeat(64), characters: 9 };
  const source = { by: 'plain_text', media_type: 'text/plain', source_bytes: 9, pages: null, duration_seconds: null };

  /** Opens documents whose text is two letters, each a chunk and the name of what it tells of; chunking reports so many. */
  async function openDocuments(chunks: number) {
    const opened = await openPipeline('documents', {
      stages: {
        extraction: { ...text, ...source },
        chunking: async ({ entity }, { attempt }: Pick<HandlerContext, 'attempt'>) => {
          await draftChunks((...asked) => opened.sql(...asked), attempt, String(entity.id), 'ab');
          return { chunks, tokens: 2, output_location: 'chunk' };
        },
        kg_ingest: ({ entity }) => opened.sql('select id as key from public.chunk where document_id = $1', [entity.id]),
        'chunks.kg': ({ entity }) => facts([String(entity.text)]),
        'chunks.graphiti': { posted: false },
      },
    });
    await opened.sql('update public.document_way set share = 1');
    const row = { source_path: 'org_red/file.txt', metadata: { clerk_org_id: 'org_red' } };
    return Object.assign(opened, { id: await opened.begin(row) });
  }

  plain('becomes its chunks, and what each of them tells', async () => {
    await using pipeline = await openDocuments(2);
    const { stages } = await pipeline.expectRow(pipeline.id).toComplete();
    expect(stages.kg_ingest?.result).toMatchObject({ completed: 2, failed: 0 });
    expect(await pipeline.sql('select name from public.kg_mention order by 1')).toEqual([{ name: 'a' }, { name: 'b' }]);
    expect(await pipeline.sql('select * from millrace.check_invariants()')).toEqual([]);
  });

  plain('shows no chunk where chunking reports more of them than it has drafted', async () => {
    await using pipeline = await openDocuments(3);
    await pipeline.work();
    const [row] = await pipeline.sql('select chunking_error from public.document');
    expect(row.chunking_error).toMatch(/^the database refused to record this/);
    const [{ detail }] = await pipeline.sql(
      `select error ->> 'detail' as detail from millrace.attempts where error is not null`,
    );
    expect(detail).toMatch(/reports 3 chunks .*, but has drafted 2/);
    expect(await pipeline.sql('select from public.chunk')).toEqual([]);
  });
});

describe('facts', () => {
  test('are the same rows when they are applied again', async ({ engine }) => {
    const [a = '', b = ''] = await addChunks(engine, await addDocument(engine), 'ab');
    const said = {
      [a]: facts(
        ['Ada', 'ADA', 'Bob', 'The Bob Company'],
        ['Ada met Bob', 'ada met bob', 'Ada paid Bob', 'Ada met Eve'],
      ),
      [b]: facts(['Bob', 'Cy'], ['Cy met Bob']),
    };
    const all = () =>
      engine.rows(`select 'entity', to_jsonb(e) as row from public.kg_entity e union all select 'mention', to_jsonb(m) from public.kg_mention m
        union all select 'edge', to_jsonb(e) from public.kg_edge e order by 1, 2`);
    await applyFacts(engine.sql, said);
    const once = await all();
    expect(await mentions(engine)).toEqual(['a: ADA = ada', 'a: The Bob Company = bob', 'b: Bob = bob', 'b: Cy = cy']);
    expect(await engine.rows('select relation, fact from public.kg_edge order by lower(fact)')).toEqual([
      { relation: 'met', fact: 'Ada met Bob.' },
      { relation: 'paid', fact: 'Ada paid Bob.' },
      { relation: 'met', fact: 'Cy met Bob.' },
    ]);
    await applyFacts(engine.sql, said);
    expect(await all()).toEqual(once);
    for (const [id, result] of Object.entries(said)) await applyFacts(engine.sql, { [id]: result });
    expect(await all()).toEqual(once);
  });

  test('that a chunk no longer says go, and other chunks’ stay', async ({ engine }) => {
    const [a = '', b = ''] = await addChunks(engine, await addDocument(engine), 'ab');
    const said = facts(['Ada', 'Bob'], ['Ada met Bob']);
    await applyFacts(engine.sql, { [a]: said, [b]: said });
    await applyFacts(engine.sql, { [a]: facts(['Bob']) });
    expect(await mentions(engine)).toEqual(['a: Bob = bob', 'b: Ada = ada', 'b: Bob = bob']);
    expect(await engine.rows('select chunk_id from public.kg_edge')).toEqual([{ chunk_id: b }]);
  });

  test('of two organisations name entities of their own', async ({ engine }) => {
    for (const org of ['org_red', 'org_blue']) {
      const [a = ''] = await addChunks(engine, await addDocument(engine, org), 'a');
      await applyFacts(engine.sql, { [a]: facts(['Ada']) });
    }
    expect(await engine.rows('select clerk_org_id, key from public.kg_entity order by 1')).toEqual([
      { clerk_org_id: 'org_blue', key: 'ada' },
      { clerk_org_id: 'org_red', key: 'ada' },
    ]);
  });

  test('that two sessions write at once neither deadlock nor double', async ({ engine }) => {
    const names = ['Ada', 'Bob', 'Cy', 'Di', 'Eve'];
    const [a = '', b = ''] = await addChunks(engine, await addDocument(engine), 'ab');
    const first = await openTransaction(engine);
    const second = await openTransaction(engine);
    await applyFacts(first, { [a]: facts(names.slice(0, 3), ['Ada met Bob']) });
    const waits = begin(applyFacts(second, { [b]: facts([...names].reverse(), ['Ada met Bob']) }));
    await untilBlocked(engine, second);
    await first.query('commit');
    await waits;
    await second.query('commit');
    expect(await engine.rows('select key from public.kg_entity order by key')).toEqual(
      names.map((name) => ({ key: name.toLowerCase() })),
    );
    expect(await mentions(engine)).toHaveLength(8);
    expect(await engine.rows('select source_id, target_id from public.kg_edge')).toHaveLength(2);
  });

  test('from many sessions at once come through, whatever the order of the names', async ({ engine }) => {
    const ids = await addChunks(engine, await addDocument(engine), 'abcdefgh');
    const names = Array.from({ length: 30 }, (_, n) => `Name ${n}`);
    const turned = (by: number) => names.map((_, n) => names[(n * 7 + by * 5) % names.length] ?? '');
    const clients = await Promise.all(ids.map(() => engine.database.connect()));
    for (let round = 0; round < 3; round++) {
      await engine.sql.query('delete from public.kg_entity');
      await Promise.all(ids.map((chunk, n) => applyFacts(clients[n] as pg.Client, { [chunk]: facts(turned(n)) })));
      expect(await engine.value('select count(*)::int from public.kg_entity')).toBe(names.length);
      expect(await mentions(engine)).toHaveLength(names.length * ids.length);
    }
  });
});

test('names are compared without case, accents, punctuation, articles and forms of companies', async ({ engine }) => {
  const keys: Record<string, string> = {
    'The Acme Company': 'acme',
    'ACME, Inc.': 'acme',
    Acmé: 'acme',
    'acme co ltd': 'acme',
    'École Normale': 'ecole normale',
    'ЗАО «Ромашка»': 'зао ромашка',
    '東京 Tower': '東京 tower',
    'C++': 'c++',
    'C#': 'c#',
    The: 'the',
    'The Company': 'company',
    Ltd: 'ltd',
    '  Wendle   Canal ': 'wendle canal',
    'O’Neill': 'o neill',
    "O'Neill": 'o neill',
    ﬁlm: 'film',
    '!!!': '!!!',
    'A. B. Smith': 'a b smith',
    'A & B': 'a b',
    'A Tale of Two Cities': 'tale of two cities',
    Παπαδόπουλος: 'παπαδοπουλοσ',
    ΠΑΠΑΔΟΠΟΥΛΟΣ: 'παπαδοπουλοσ',
    バス: 'バス',
    パス: 'パス',
    ﾊﾟｽ: 'パス',
  };
  const found = await engine.rows<{ name: string; key: string }>(
    'select name, public.kg_key(name) as key from unnest($1::text[]) name',
    [Object.keys(keys)],
  );
  expect(Object.fromEntries(found.map(({ name, key }) => [name, key]))).toEqual(keys);
});

test('a name of any length costs what a short one does: its beginning is the key', async ({ engine }) => {
  const same = (name: string) =>
    engine.value('select public.kg_key($1) = public.kg_key(left($1, 500))', [name.repeat(1_000_000 / name.length)]);
  for (const name of ['Ab ', 'é', '. ', 'the ', ' inc']) expect(await same(name), name).toBe(true);
});

test('Graphiti’s word is kept with the chunk, once', async ({ engine }) => {
  const [a = '', b = ''] = await addChunks(engine, await addDocument(engine), 'ab');
  const apply = (posted: boolean) =>
    engine.sql.query('select public.apply_graphiti($1)', [
      JSON.stringify([a].map((entity_id) => ({ entity_id, result: { posted } }))),
    ]);
  const times = () => engine.rows('select id, graphiti_posted_at from public.chunk order by ordinal');
  await apply(false);
  expect(await times()).toEqual([a, b].map((id) => ({ id, graphiti_posted_at: null })));
  const now = await engine.now();
  await apply(true);
  await engine.advance('1 hour');
  await apply(true);
  expect(await times()).toEqual([
    { id: a, graphiti_posted_at: now },
    { id: b, graphiti_posted_at: null },
  ]);
});

test('deleting a document removes its chunks, drafts and facts, and what it alone named is seen no more', async ({
  engine,
}) => {
  const id = await addDocument(engine);
  const other = await addDocument(engine);
  const [a = ''] = await addChunks(engine, id, 'a');
  const [b = ''] = await addChunks(engine, other, 'b');
  await applyFacts(engine.sql, { [a]: facts(['Ada', 'Bob'], ['Ada met Bob']), [b]: facts(['Bob']) });
  await addDrafts(engine, 2, id, 'c');
  await engine.sql.query('delete from public.document where id = $1', [id]);
  expect(await engine.rows('select document_id from public.chunk')).toEqual([{ document_id: other }]);
  expect(await engine.rows('select from public.chunk_draft')).toEqual([]);
  expect(await engine.rows('select from public.kg_edge')).toEqual([]);
  expect(await mentions(engine)).toEqual(['b: Bob = bob']);
  const user = await engine.database.connect('authenticated', { sub: randomUUID(), org_id: 'org_red' });
  expect((await user.query('select key from public.kg_entity')).rows).toEqual([{ key: 'bob' }]);
});

test('a phase that somebody skipped shows as skipped, and the job goes on', async ({ engine }) => {
  await engine.sql.query('update public.document_way set share = 1');
  const id = await addDocument(engine);
  const run = await engine.value(`select millrace.start('documents', $1)`, [id]);
  await engine.sql.query(`select millrace.skip($1, 'extraction')`, [run]);
  expect(await engine.rows('select phase, status from public.pipeline_phase order by attempt_id')).toEqual([
    { phase: 'extraction', status: 'failed' },
    { phase: 'extraction', status: 'skipped' },
    { phase: 'chunking', status: 'queued' },
  ]);
  expect(await engine.rows('select current_phase, status from public.pipeline_job')).toEqual([
    { current_phase: 'chunking', status: 'processing' },
  ]);
});

test('phases have ids of their own kind that stay the same, and a row for them is refused with what to write', async ({
  engine,
}) => {
  await engine.sql.query('update public.document_way set share = 1');
  const id = await addDocument(engine);
  const run = await engine.value(`select millrace.start('documents', $1)`, [id]);
  await engine.sql.query(`select millrace.skip($1, 'extraction')`, [run]);
  const ids = () => engine.rows<{ id: string }>('select id from public.pipeline_phase order by attempt_id');
  const first = await ids();
  expect(first.map((row) => row.id)).toEqual(Array(3).fill(expect.stringMatching(/^[0-9a-f-]{36}$/)));
  expect(await ids()).toEqual(first);
  for (const view of ['pipeline_job', 'pipeline_phase']) {
    const refusal = engine.sql.query(`insert into public.${view} (id) values (gen_random_uuid())`);
    await expect(refusal).rejects.toMatchObject({ hint: expect.stringContaining('public.document') });
  }
});

test('a document whose text lacks something shows as partly read', async ({ engine }) => {
  const id = await addDocument(engine);
  const reading = () => engine.value('select reading from public.document where id = $1', [id]);
  expect(await reading()).toBeNull();
  for (const [result, shown] of [
    ['{"characters": 5}', 'whole'],
    ['{"characters": 5, "partly_read": {"unread_letters": 2}}', 'partly'],
  ]) {
    await engine.sql.query(
      `set local millrace.projecting = '1'; update public.document set extraction_result = '${result}' where id = '${id}'`,
    );
    expect(await reading()).toBe(shown);
  }
});

describe('the cut-over', () => {
  const ways = async (engine: Engine, ids?: string[]) => {
    const rows = await engine.rows<{ way: string; ids: string[] }>(
      `select p.name as way, array_agg(r.entity_id order by r.entity_id) as ids
       from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
       where r.status = 'running' and r.entity_id = any (coalesce($1, array[r.entity_id])) group by p.name order by p.name`,
      [ids],
    );
    return Object.fromEntries(rows.map(({ way, ids }) => [way, ids]));
  };
  const queueAll = async (engine: Engine) => {
    await engine.rows(`select millrace.cancel(id) from millrace.runs where status = 'running'`);
    await engine.rows(`update public.document set extraction_status = 'queued'`);
    return ways(engine);
  };

  test('goes by the setting, by organisation and share by share, and a share that grows only adds', async ({
    engine,
  }) => {
    await engine.rows(
      `insert into public.document (source_path, metadata)
       select 'org_red/a.txt', '{"clerk_org_id": "org_red"}' from generate_series(1, 60)`,
    );
    const blue = await addDocument(engine, 'org_blue');
    expect((await queueAll(engine)).documents, 'off where nobody says otherwise').toBeUndefined();
    await engine.rows(`select vault.create_secret('true', 'millrace_use_new_pipeline')`);
    expect((await queueAll(engine)).document_monolith).toBeUndefined();
    await engine.rows(`update public.document_way set share = 0, orgs = array['org_blue']`);
    expect((await queueAll(engine)).documents).toEqual([blue]);
    let before = [blue];
    for (const share of [0.2, 0.5, 0.8]) {
      await engine.rows('update public.document_way set share = $1', [share]);
      const { documents: now = [], document_monolith: rest = [] } = await queueAll(engine);
      expect(now).toEqual(expect.arrayContaining(before));
      expect(Math.abs(now.length / 61 - share)).toBeLessThan(0.2);
      expect(now.length + rest.length).toBe(61);
      before = now;
    }
    await engine.rows('update public.document_way set share = 1');
    expect((await queueAll(engine)).documents).toHaveLength(61);
    expect(await engine.rows('select pipeline, runs::int > 61 as many from public.document_ways order by 1')).toEqual([
      { pipeline: 'document_monolith', many: true },
      { pipeline: 'documents', many: true },
    ]);
  });

  test('leaves a document where it is under way, and refuses what would send it both ways', async ({ engine }) => {
    const id = await addDocument(engine);
    const queue = (phase: string) => engine.rows(`update public.document set ${phase}_status = 'queued'`);
    const refused = { code: 'MR005', message: `document ${id} is under way the other way` };
    await queue('extraction');
    await engine.rows('update public.document_way set share = 1');
    await queue('extraction');
    expect(await ways(engine)).toEqual({ document_monolith: [id] });
    await expect(queue('chunking')).rejects.toMatchObject(refused);
    await expect(engine.rows(`select millrace.start('documents', $1)`, [id])).rejects.toMatchObject(refused);
    const worker = await Worker.of(engine, 'monolith', 'document_monolith');
    const { attempt } = await worker.takeOne();
    await engine.rows(`select millrace.cancel(run_id) from millrace.attempts where id = $1`, [attempt]);
    await queue('extraction');
    expect(await ways(engine)).toEqual({ documents: [id] });
    await expect(queue('monolith')).rejects.toMatchObject(refused);
    await expect(engine.rows(`select millrace.start('document_monolith', $1)`, [id])).rejects.toMatchObject(refused);
  });

  test('is turned by nobody who is signed in', async ({ engine }) => {
    const user = await engine.database.connect('authenticated', { sub: randomUUID(), org_id: 'org_red' });
    for (const statement of ['select * from public.document_way', 'update public.document_way set share = 1']) {
      expect(await engine.refusal(statement, [], user)).toMatchObject({ code: '42501' });
    }
  });
});
