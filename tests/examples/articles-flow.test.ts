// Articles in their pipeline: the codes that a row passes, whose history they leave, and how a run ends.
import { randomUUID } from 'node:crypto';
import { test as base, describe, expect } from 'vitest';
import { openPipeline } from '../../packages/test/index.ts';
import type { StageWork, TestPipeline } from '../../packages/test/test.d.ts';
import { PermanentError } from '../../supabase/functions/_millrace/mod.ts';
import { unreachableBy, values } from '../../supabase/functions/_pipelines/articles-codes.ts';
import type { Row } from '../support/engine.ts';

const content = Array.from({ length: 30 }, (_, index) => `word${index}`).join(' ');
const published = {
  slug: 'lock-gates',
  title: 'Lock gates',
  summary: 'Gates were replaced.',
  tags: ['locks'],
  thumbnail_url: null,
  url: null,
  notify: false,
};
const page = {
  title: 'Lock gates',
  content,
  canonical_url: 'https://a.test/1',
  image_url: null,
  author: null,
  published_at: null,
  language: 'en',
  by: 'page',
};
/** The results of the stages. An address may say that its article fails, under a code, or is of no interest. */
const stages: Record<string, StageWork> = {
  fetch: ({ entity }) => {
    const [, code] = /fails-(\w+)/.exec(String(entity.url)) ?? [];
    if (code) throw new PermanentError(code, 'The page cannot be read.');
    return page;
  },
  score: ({ entity }) => ({
    ...{ score: 0.5, topic_id: randomUUID(), threshold: 0.15, by: 'embeddings' },
    relevant: !String(entity.url).includes('irrelevant'),
  }),
  summarize: { summary: 'Gates were replaced.' },
  tag: { tags: ['locks'] },
  thumbnail: { thumbnail_url: 'https://a.test/t.jpg', from: 'image', reason: null },
  publish: published,
  republish: { ...published, title: 'Gates' },
};

class Articles {
  constructor(readonly pipeline: TestPipeline) {}

  add(values: Row = {}): Promise<string> {
    return this.pipeline.insert({ url: `https://feed.test/${randomUUID()}`, ...values });
  }

  async code(id: string): Promise<number> {
    const [row] = await this.pipeline.sql('select status_code from public.ingestion_queue where id = $1', [id]);
    return row.status_code;
  }

  async write(id: string, ...codes: number[]): Promise<void> {
    for (const code of codes) {
      await this.pipeline.sql('update public.ingestion_queue set status_code = $2 where id = $1', [id, code]);
    }
  }

  /** The codes of its history, those of one transaction in the order in which they follow one another. */
  async passed(id: string): Promise<number[]> {
    const rows = await this.pipeline.sql<{ from_status: number | null; to_status: number }>(
      'select from_status, to_status from public.status_history where queue_id = $1 order by changed_at, id',
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
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads a fixture's needs from the pattern of its first argument.
  queue: async ({}, use) => {
    await using pipeline = await openPipeline('articles', { stages });
    await use(new Articles(pipeline));
    expect(await pipeline.sql('select * from millrace.check_invariants()')).toEqual([]);
  },
});

const discovery = [100, 110, 111, 112, 120, 121, 122];
const enrichment = [200, 210, 211, 212, 220, 221, 222, 230, 231, 232, 240, 300];

describe('an article', () => {
  test('that was discovered passes all codes, is reviewed, published and edited', async ({ queue }) => {
    const id = await queue.add();
    expect(await queue.code(id)).toBe(110);
    await queue.pipeline.work();
    await queue.write(id, 310, 320, 330);
    await queue.pipeline.work();
    expect(await queue.code(id)).toBe(400);
    await queue.write(id, 320);
    await queue.pipeline.sql('update public.ingestion_queue set title = $2 where id = $1', [id, 'Gates']);
    await queue.write(id, 410);
    await queue.pipeline.work();
    expect(await queue.passed(id)).toEqual([...discovery, ...enrichment, 310, 320, 330, 400, 320, 410]);
    const [publication] = await queue.pipeline.sql('select title, queue_id from public.publication');
    expect(publication).toEqual({ title: 'Gates', queue_id: id });
  });

  test('that was entered by hand is not scored', async ({ queue }) => {
    const id = await queue.add({ entry_type: 'manual' });
    await queue.pipeline.work();
    expect(await queue.passed(id)).toEqual([110, 111, 112, ...enrichment]);
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
    await queue.pipeline.work();
    expect(await queue.passed(id)).toEqual([200, 210, 211, 212, 230, 231, 232, 240, 300]);
  });
});

describe('a run ends', () => {
  test('as a duplicate, and goes on as none when a person says so', async ({ queue }) => {
    const [first, copy] = [await queue.add(), await queue.add()];
    await queue.pipeline.work();
    expect([await queue.code(first), await queue.code(copy)].sort()).toEqual([300, 520]);
    const id = (await queue.code(copy)) === 520 ? copy : first;
    await queue.write(id, 120);
    expect(await queue.code(id)).toBe(120);
  });

  test('as irrelevant, and goes on when a person wants it all the same', async ({ queue }) => {
    const id = await queue.add({ url: 'https://feed.test/irrelevant' });
    await queue.pipeline.work();
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
    const ids = new Map<string, string>();
    for (const code of codes) ids.set(code, await queue.add({ url: `https://feed.test/fails-${code}` }));
    await queue.pipeline.work();
    const shown: Row = {};
    for (const [code, id] of ids) shown[code] = await queue.code(id);
    expect(shown).toEqual({ ...unreachableBy, no_content: 500, server_error: 500, rate_limited: 500 });
  });
});

test('the codes are those of the lookup table', async ({ queue }) => {
  const rows = await queue.pipeline.sql('select * from public.status_lookup order by code');
  const given = Object.entries(values).flatMap(([category, codes]) =>
    Object.entries(codes).map(([code, [name, description]]) => ({ code: Number(code), name, description, category })),
  );
  expect(rows.map(({ code, name, description, category }) => ({ code, name, description, category }))).toEqual(given);
  expect(given).toHaveLength(29);
  expect(rows.filter(({ is_terminal }) => is_terminal).map(({ code }) => code)).toEqual([500, 510, 520, 530, 540]);
});
