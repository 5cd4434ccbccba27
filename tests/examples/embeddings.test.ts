// The example embeddings: what a memo's change does to its chunks, who finds what, and what is bought.
import { expect } from 'vitest';
import { embedText } from '../../local/services/model/embed-text.ts';
import { splitBody } from '../../supabase/functions/_embeddings/split-body.ts';
import { type Engine, projectTest as test } from '../support/engine.ts';
import { MemoWriter, writeAtRandom } from '../support/examples/memo-writes.ts';
import { dimensions, MemoSite } from '../support/examples/memos.ts';
import { huntLength } from '../support/hunt-length.ts';

const red = '00000000-0000-4000-8000-00000000000a';
const blue = '00000000-0000-4000-8000-00000000000b';
/** A paragraph that makes a chunk of its own. */
const paragraph = (about: string) => `${about} `.repeat(Math.ceil(420 / (about.length + 1))).trim();

/** The vector of a text, as the column takes it: a server without pgvector has real[], which has other brackets. */
async function vectorOf(engine: Engine, text: string): Promise<string> {
  const vector = JSON.stringify(embedText(text, dimensions));
  const isArray = await engine.value(`select to_regtype('extensions.vector') is null`);
  return isArray ? vector.replace('[', '{').replace(']', '}') : vector;
}

/** The memos that an account finds by a text, nearest first. Without an account the service's key asks, which finds all. */
async function found(engine: Engine, text: string, account?: string, model = 'test-model'): Promise<string[]> {
  const claims = { app_metadata: { account_id: account } };
  const session = await engine.database.connect(account ? 'authenticated' : 'service_role', claims);
  // As in a large table, which pgvector reads by the index of vectors, and of it a small part.
  await session.query('set hnsw.max_scan_tuples = 1; set enable_sort = off');
  const vector = await vectorOf(engine, text);
  const { rows } = await session.query('select memo_id, chunk, similarity from public.search_memos($1, $2)', [
    vector,
    model,
  ]);
  engine.database.giveBack(session);
  return rows.filter(({ similarity }) => similarity > 0.5).map(({ memo_id }) => memo_id);
}

test('a memo is found by what it says, in its account alone, and with its account it moves', async ({ engine }) => {
  const site = await new MemoSite(engine).start();
  const locks = await site.add(paragraph('canal locks and gates'), red);
  await site.add(paragraph('rye bread from the oven'), red);
  await site.add(paragraph('canal locks and boats'), blue);
  await site.untilDone();
  expect(await found(engine, 'canal locks and gates', red)).toEqual([locks]);
  await engine.sql.query('update public.memos set account_id = $2 where id = $1', [locks, blue]);
  expect(await found(engine, 'canal locks and gates', red)).toEqual([]);
  expect(await found(engine, 'canal locks and gates', blue)).toHaveLength(2);
  expect(site.provider.calls).toBe(1);
});

test.for([1, 1_001])(
  'an account of %i memos finds its own, however many of others are nearer',
  async (own, { engine }) => {
    const add = async (account: string, memos: number, texts: string[]) => {
      await engine.sql.query(
        `insert into public.memos (account_id, body) select $1, 'locks ' || at from generate_series(1, $2::int) at`,
        [account, memos],
      );
      const ids = await engine.rows<{ id: string }>('select id from public.memos where account_id = $1', [account]);
      for (const [at, text] of texts.entries()) {
        await engine.sql.query(
          `insert into public.memo_chunks (memo_id, digest, model, text, is_current, embedding) values ($1, '', 'test-model', 'locks', true, $2)`,
          [ids[at]?.id, await vectorOf(engine, text)],
        );
      }
    };
    const near = Array.from({ length: 80 }, (_, at) => `canal locks and gates ${at}`);
    await add(red, near.length, near);
    await add(blue, own, own === 1 ? ['canal locks and boats'] : near.map((text) => text.replace('gates', 'boats')));
    expect(await found(engine, 'canal locks and gates', blue)).toHaveLength(Math.min(own, 10));
  },
);

test('fifty memos are one call, and their cost is the provider’s', async ({ engine }) => {
  const site = await new MemoSite(engine).start();
  for (let at = 0; at < 50; at++) await site.add([paragraph(`first ${at}`), paragraph(`second ${at}`)].join('\n\n'));
  await site.untilDone();
  expect(site.provider).toMatchObject({ calls: 1, texts: 100 });
  expect(await engine.value(`select sum((usage ->> 'input_tokens')::int)::int from millrace.attempts`)).toBe(
    site.provider.tokens,
  );
  expect(await site.faults()).toEqual([]);
});

test('vectors of another length are bought once, and not by halves of the memos', async ({ engine }) => {
  const site = await new MemoSite(engine).start();
  for (let at = 0; at < 4; at++) await site.add(paragraph(`memo ${at}`));
  site.provider.makes = 768;
  await site.round();
  expect(site.provider.calls).toBe(1);
  delete site.provider.makes;
  await site.untilDone();
  expect(await site.faults()).toEqual([]);
});

test('a request has no more tokens than a model takes, whatever the script', async ({ engine }) => {
  const site = await new MemoSite(engine).start();
  const sizes: number[] = [];
  site.provider.plan = (texts) => {
    sizes.push(Buffer.byteLength(texts.join('')));
    return 'answers';
  };
  // As much as a memo may have; a letter of such a script is up to three tokens.
  await site.add(Array.from({ length: 66 }, (_, at) => `${at} ${'ሰ'.repeat(1_990)}`).join('\n\n'));
  await site.untilDone();
  expect(Math.max(...sizes)).toBeLessThanOrEqual(300_000);
  expect(await site.faults()).toEqual([]);
});

test('an edit buys the chunks that it changed, and one that is taken back none', async ({ engine }) => {
  const site = await new MemoSite(engine).start();
  const parts = ['one', 'two', 'three'].map(paragraph);
  const id = await site.add(parts.join('\n\n'));
  await site.untilDone();
  await site.edit(id, [paragraph('zero'), ...parts].join('\n\n'));
  await site.untilDone();
  expect(site.provider.texts).toBe(4);
  await site.edit(id, 'gone');
  await site.edit(id, [paragraph('zero'), ...parts].join('\n\n'));
  await site.untilDone();
  expect(site.provider.texts).toBe(4);
  expect(await site.faults()).toEqual([]);
});

test('a search compares the vectors of one model alone, while another buys them anew', async ({ engine }) => {
  const site = await new MemoSite(engine).start();
  const [first, second] = [
    await site.add(paragraph('canal locks'), red),
    await site.add(paragraph('canal boats'), red),
  ];
  await site.untilDone();
  site.env.LLM_EMBEDDING_MODEL = 'later-model';
  await engine.sql.query('update public.memos set revision = revision + 1, embed_at = millrace.now() where id = $1', [
    first,
  ]);
  await site.untilDone();
  expect(await found(engine, 'canal boats', red)).toEqual([second]);
  expect(await found(engine, 'canal locks', red, 'later-model')).toEqual([first]);
});

test('a text that is no longer in a memo is found no more from the moment of the change', async ({ engine }) => {
  const site = await new MemoSite(engine).start();
  const id = await site.add(paragraph('the secret of the ropeyard'));
  await site.untilDone();
  for (const body of ['', 'something else']) {
    await site.edit(id, body);
    expect(await found(engine, 'the secret of the ropeyard')).toEqual([]);
  }
  await site.untilDone();
  expect(await engine.value('select string_agg(text, $1) from public.memo_chunks', ['|'])).toBe('something else');
  await site.edit(id, ' \n ');
  await site.untilDone();
  expect(await engine.value('select count(*) from public.memo_chunks')).toBe('0');
  expect(site.provider.calls).toBe(2);
});

test('a memo that changes twice while the model answers ends with the chunks of the last body', async ({ engine }) => {
  const site = await new MemoSite(engine).start();
  const id = await site.add(paragraph('first'));
  const neighbour = await site.add(paragraph('neighbour'));
  const bodies = ['second', 'third'];
  site.provider.plan = async () => {
    for (const body of bodies.splice(0)) await site.edit(id, paragraph(body));
    return 'answers' as const;
  };
  await site.round();
  expect(await engine.value('select embed_at is null from public.memos where id = $1', [neighbour])).toBe(true);
  expect(await engine.value(`select error ->> 'code' from millrace.attempts where state = 'failed'`)).toBe(
    'memo_changed',
  );
  await site.untilDone();
  expect(await site.faults()).toEqual([]);
  expect(site.provider.texts).toBe(3);
});

test('an answer that comes after its lease writes nothing', async ({ engine }) => {
  const site = await new MemoSite(engine).start();
  const id = await site.add(paragraph('first'));
  const fates = ['kills' as const];
  site.provider.plan = () => fates.pop() ?? 'answers';
  await site.round();
  await site.edit(id, paragraph('second'));
  await engine.advance('2 minutes');
  await site.untilDone();
  site.provider.release(true);
  await new Promise((resolve) => setImmediate(resolve));
  await site.round();
  expect(await site.faults()).toEqual([]);
});

test('a completion writes to no index of vectors, which takes milliseconds a chunk', async ({ engine }) => {
  const site = await new MemoSite(engine).start();
  const chunks = [];
  for (let at = 0; at < 40; at++) {
    const text = Array.from({ length: 40 }, () => crypto.randomUUID()).join(' ');
    const embedding = embedText(text, dimensions);
    chunks.push({ memo_id: await site.add(text), revision: 1, digest: 'abc', text, model: 'm', embedding });
  }
  await engine.sql.query('select public.keep_chunks($1)', [JSON.stringify(chunks)]);
  const result = { revision: 1, chunks: ['abc'] };
  const items = JSON.stringify(chunks.map(({ memo_id }) => ({ entity_id: memo_id, result })));
  await engine.sql.query('begin');
  await engine.sql.query('select public.apply_memo_chunks($1)', [items]);
  const inPlace = `select pg_stat_get_xact_tuples_hot_updated('public.memo_chunks'::regclass)::int`;
  expect(await engine.value(inPlace)).toBe(chunks.length);
  await engine.sql.query('commit');
});

test('a memo whose chunks somebody deletes meanwhile is not complete', async ({ engine }) => {
  const site = await new MemoSite(engine).start();
  const id = await site.add(paragraph('first'));
  await expect(
    engine.sql.query('select public.apply_memo_chunks($1)', [
      JSON.stringify([{ entity_id: id, result: { revision: 1, chunks: ['abc'] } }]),
    ]),
  ).rejects.toMatchObject({ code: 'MR002', message: `memo ${id} has 0 of 1 chunks` });
});

test('a completion of an older body writes nothing, and its memo stays due', async ({ engine }) => {
  const site = await new MemoSite(engine).start();
  const id = await site.add(paragraph('first'));
  await site.untilDone();
  await site.edit(id, paragraph('second'));
  await engine.sql.query('select public.apply_memo_chunks($1)', [
    JSON.stringify([{ entity_id: id, result: { revision: 1, chunks: [] } }]),
  ]);
  expect(await engine.value('select embed_at is not null from public.memos')).toBe(true);
  expect(await engine.value('select count(*) from public.memo_chunks')).toBe('1');
});

test('chunks are pieces of the text, at the ends of paragraphs and words, and halve no character', () => {
  const long = `${'word '.repeat(500)}\n\n${'💡'.repeat(1_500)}`;
  const text = ['short', 'also short', paragraph('a long one'), long, 'the end'].join('\n\n');
  const chunks = splitBody(text);
  for (const chunk of chunks) {
    expect(text).toContain(chunk);
    expect(chunk.length).toBeLessThanOrEqual(2_000);
    expect(chunk).toBe(Buffer.from(chunk).toString());
  }
  expect(chunks.join('').replaceAll(/\s/g, '')).toBe(text.replaceAll(/\s/g, ''));
  expect(chunks[0]).toBe(`short\n\nalso short\n\n${paragraph('a long one')}`);
  expect(splitBody(' \n\n \n')).toEqual([]);
  expect(splitBody(`${paragraph('same')}\n\n${paragraph('same')}`)).toHaveLength(1);
});

test('no vector is stale or lost, whatever is written while calls fail, come late and die', async ({ engine }) => {
  const seed = Number(process.env.SOAK_SEED ?? Date.now() % 1_000_000);
  const writes = huntLength(100, 3_000);
  const site = await new MemoSite(engine).start();
  const writer = new MemoWriter(engine, 'public.memos', seed);
  await writeAtRandom(writer, site.provider, () => site.round(), { writes, seed });
  await site.untilDone();
  site.provider.release(true);
  await site.untilDone();
  expect(await site.faults(), `seed ${seed}`).toEqual([]);
  const { calls, texts, tokens } = site.provider;
  const cost = await engine.value(`select sum((usage ->> 'cost_usd')::numeric) from millrace.attempts`);
  process.stdout.write(`\n${JSON.stringify({ seed, writes, calls, texts, tokens, cost })}\n`);
});
