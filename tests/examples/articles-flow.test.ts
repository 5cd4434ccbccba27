// Articles on the engine: the codes that a row passes, whose history they leave, and how a run ends.
import { randomUUID } from 'node:crypto';
import { describe, expect } from 'vitest';
import { unreachableBy, values } from '../../supabase/functions/_pipelines/articles-codes.ts';
import { projectTest as base, type Engine, type Row } from '../support/engine.ts';
import { completed, failed, Worker } from '../support/worker.ts';

const content = Array.from({ length: 30 }, (_, index) => `word${index}`).join(' ');
const results: Record<string, Row> = {
  fetch: {
    title: 'Lock gates',
    content,
    canonical_url: 'https://a.test/1',
    image_url: null,
    author: null,
    published_at: null,
    language: 'en',
    by: 'page',
  },
  score: { score: 0.5, topic_id: randomUUID(), threshold: 0.15, relevant: true, by: 'embeddings' },
  summarize: { summary: 'Gates were replaced.' },
  tag: { tags: ['locks'] },
  thumbnail: { thumbnail_url: 'https://a.test/t.jpg', from: 'image', reason: null },
  publish: {
    slug: 'lock-gates',
    title: 'Lock gates',
    summary: 'Gates were replaced.',
    tags: ['locks'],
    thumbnail_url: null,
    url: null,
    notify: false,
  },
};
results.republish = { ...results.publish, title: 'Gates' };

class Articles {
  constructor(readonly engine: Engine) {}

  async add(values: Row = {}): Promise<string> {
    const row: Row = { url: `https://feed.test/${randomUUID()}`, ...values };
    const places = Object.keys(row).map((_, index) => `$${index + 1}`);
    const insert = `insert into public.ingestion_queue (${Object.keys(row)}) values (${places}) returning id`;
    return this.engine.value(insert, Object.values(row));
  }

  code(id: string): Promise<number> {
    return this.engine.value('select status_code from public.ingestion_queue where id = $1', [id]);
  }

  async write(id: string, ...codes: number[]): Promise<void> {
    for (const code of codes) {
      await this.engine.sql.query('update public.ingestion_queue set status_code = $2 where id = $1', [id, code]);
    }
  }

  /** Does the work of these stages, in turn. */
  async work(...stages: string[]): Promise<void> {
    for (const stage of stages) await this.finish(stage, results[stage] ?? {});
  }

  async finish(stage: string, result: Row): Promise<void> {
    const worker = await Worker.of(this.engine, stage, 'articles');
    expect(await worker.report(completed(await worker.takeOne(), result))).toEqual(['accepted']);
  }

  /** The codes of its history, those of one transaction in the order in which they follow one another. */
  async passed(id: string): Promise<number[]> {
    const rows = await this.engine.rows<{ from_status: number | null; to_status: number }>(
      'select from_status, to_status from public.status_history where queue_id = $1 order by changed_at',
      [id],
    );
    const passed: number[] = [];
    for (let at: number | null = null; rows.length > 0; at = passed.at(-1) ?? null) {
      const index = rows.findIndex(({ from_status }) => from_status === at);
      if (index < 0) throw new Error(`the history breaks off at ${at}: ${JSON.stringify(rows)}`);
      passed.push(...rows.splice(index, 1).map(({ to_status }) => to_status));
    }
    return passed;
  }
}

const test = base.extend<{ queue: Articles }>({
  queue: async ({ engine }, use) => {
    await use(new Articles(engine));
  },
});

const discovery = [100, 110, 111, 112, 120, 121, 122];
const enrichment = [200, 210, 211, 212, 220, 221, 222, 230, 231, 232, 240, 300];

describe('an article', () => {
  test('that was discovered passes all codes, is reviewed, published and edited', async ({ queue }) => {
    const id = await queue.add();
    expect(await queue.code(id)).toBe(110);
    await queue.work('fetch', 'score', 'summarize', 'tag', 'thumbnail');
    await queue.write(id, 310, 320, 330);
    await queue.work('publish');
    expect(await queue.code(id)).toBe(400);
    await queue.write(id, 320);
    await queue.engine.sql.query('update public.ingestion_queue set title = $2 where id = $1', [id, 'Gates']);
    await queue.write(id, 410);
    await queue.work('republish');
    expect(await queue.passed(id)).toEqual([...discovery, ...enrichment, 310, 320, 330, 400, 320, 410]);
    const [publication] = await queue.engine.rows('select title, queue_id from public.publication');
    expect(publication).toEqual({ title: 'Gates', queue_id: id });
  });

  test('that was entered by hand is not scored', async ({ queue }) => {
    const id = await queue.add({ entry_type: 'manual' });
    await queue.work('fetch');
    expect(await queue.passed(id)).toEqual([110, 111, 112, 200, 210]);
  });

  test.for<[string, Row, number[]]>([
    ['a text', { content }, [200, 210]],
    ['a summary', { content, summary: 'S' }, [220]],
    ['all that a review needs', { summary: 'S', tags: ['t'], thumbnail_url: 'https://a.test/t.jpg' }, [300]],
  ])('that brings %s begins there', async ([, given, codes], { queue }) => {
    const id = await queue.add({ entry_type: 'manual', title: 'T', url: null, ...given });
    expect(await queue.passed(id)).toEqual(codes);
  });

  test('skips what it brings along', async ({ queue }) => {
    const id = await queue.add({ entry_type: 'manual', title: 'T', content, tags: ['t'] });
    await queue.work('summarize', 'thumbnail');
    expect(await queue.passed(id)).toEqual([200, 210, 211, 212, 230, 231, 232, 240, 300]);
  });
});

describe('a run ends', () => {
  test('as a duplicate, and goes on as none when a person says so', async ({ queue }) => {
    const [first, copy] = [await queue.add(), await queue.add()];
    await queue.work('fetch');
    await queue.work('fetch');
    expect([await queue.code(first), await queue.code(copy)].sort()).toEqual([120, 520]);
    const id = (await queue.code(copy)) === 520 ? copy : first;
    await queue.write(id, 120);
    expect(await queue.code(id)).toBe(120);
  });

  test('as irrelevant, and goes on when a person wants it all the same', async ({ queue }) => {
    const id = await queue.add();
    await queue.work('fetch');
    await queue.finish('score', { ...results.score, relevant: false });
    expect(await queue.passed(id)).toEqual([...discovery, 530]);
    await queue.write(id, 200);
    expect(await queue.code(id)).toBe(210);
  });

  test('as rejected, and is looked at again', async ({ queue }) => {
    const id = await queue.add({
      entry_type: 'manual',
      summary: 'S',
      tags: ['t'],
      thumbnail_url: 'https://a.test/t.jpg',
    });
    await queue.write(id, 310, 540, 300);
    expect(await queue.code(id)).toBe(300);
  });

  test('at 510 where nothing is at the address, and at 500 for all else', async ({ queue }) => {
    const codes = [...Object.keys(unreachableBy), 'no_content', 'server_error', 'rate_limited'];
    for (const _ of codes) await queue.add();
    const worker = await Worker.of(queue.engine, 'fetch', 'articles');
    const items = await worker.take(codes.length);
    const failures = items.map((item, index) => failed(item, { code: codes[index] ?? '', permanent: true }));
    expect(await worker.report(...failures)).toEqual(codes.map(() => 'accepted'));
    const shown: Row = {};
    for (const [index, { entity_id }] of items.entries()) shown[codes[index] ?? ''] = await queue.code(entity_id);
    expect(shown).toEqual({ ...unreachableBy, no_content: 500, server_error: 500, rate_limited: 500 });
  });
});

test('the codes are those of the lookup table', async ({ queue }) => {
  const rows = await queue.engine.rows('select * from public.status_lookup order by code');
  const given = Object.entries(values).flatMap(([category, codes]) =>
    Object.entries(codes).map(([code, [name, description]]) => ({ code: Number(code), name, description, category })),
  );
  expect(rows.map(({ code, name, description, category }) => ({ code, name, description, category }))).toEqual(given);
  expect(given).toHaveLength(29);
  expect(rows.filter(({ is_terminal }) => is_terminal).map(({ code }) => code)).toEqual([500, 510, 520, 530, 540]);
});
