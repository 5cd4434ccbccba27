// Enrichment in any order: each stage reads the row and none the others' results, so that all orders end alike; and another order
// may come while articles stand at every code.
import { expect } from 'vitest';
import { articlesAtEveryState, Roads } from '../support/examples/article-roads.ts';
import { type Articles, test } from '../support/examples/articles.ts';
import { articlesInOrder } from '../support/examples/define-articles.ts';

const orders = [
  ['summarize', 'tag', 'thumbnail'],
  ['summarize', 'thumbnail', 'tag'],
  ['tag', 'summarize', 'thumbnail'],
  ['tag', 'thumbnail', 'summarize'],
  ['thumbnail', 'summarize', 'tag'],
  ['thumbnail', 'tag', 'summarize'],
];
const codes: Record<string, number[]> = {
  summarize: [210, 211, 212],
  tag: [220, 221, 222],
  thumbnail: [230, 231, 232],
};

/** An article and its publication, without what is its own alone. */
async function ends(articles: Articles, id: string): Promise<string> {
  const [row] = await articles.engine.rows(
    `select to_jsonb(q) - array['url', 'url_fingerprint', 'text_fingerprint', 'topic_id', 'created_at'] as article,
       to_jsonb(p) - array['id'] as publication
     from public.ingestion_queue q join public.publication p on p.queue_id = q.id where q.id = $1`,
    [id],
  );
  return JSON.stringify(row).replaceAll(id, 'id');
}

test('all six orders of enrichment end alike', async ({ articles, engine }) => {
  const roads = new Roads(articles);
  const ended = new Set<string>();
  for (const order of orders) {
    await engine.define(articlesInOrder(order));
    const id = await roads.take({ interim: ['fetch', 'score', ...order, 310, 320, 330, 'publish'] });
    const passed = (await articles.history(id)).map(({ to_status }) => to_status);
    expect(passed.slice(7)).toEqual([200, ...order.flatMap((stage) => codes[stage]), 240, 300, 310, 320, 330, 400]);
    ended.add(await ends(articles, id));
  }
  expect([...ended]).toHaveLength(1);
});

const stages = ['fetch', 'score', ...(orders[0] ?? []), 'publish', 'republish'];

/** The code that a person writes next, by state, until the article is published. */
const next: Record<string, number> = { 300: 310, 310: 320, 320: 330, 500: 220, 510: 110, 520: 110, 530: 200, 540: 300 };

test('after another order every row goes on to its end', async ({ articles, engine }) => {
  const roads = new Roads(articles);
  const ids = await articlesAtEveryState(articles, roads);
  const sound = async () => expect(await engine.rows('select * from millrace.check_invariants()')).toEqual([]);
  /** Writes a code, or the one that the refusal names instead. */
  const write = async (id: string, code: number): Promise<void> => {
    const refusal = await articles.move(id, code).catch((error) => error);
    const instead = /^Write (\d+) instead/.exec(refusal?.hint ?? '')?.[1];
    if (instead) await articles.move(id, Number(instead));
    else if (refusal) throw refusal;
  };
  await engine.define(articlesInOrder(['thumbnail', 'tag', 'summarize']));
  await sound();
  for (const [state, id] of ids) {
    if (/^320 of/.test(state)) await articles.move(id, 410);
    else if (/^[12]00/.test(state)) await write(id, Number.parseInt(state, 10) + 10);
    else if (state === '500 of fetch') await write(id, 110);
    else if (state === '500 of publish') await write(id, 330);
    else if (state === '500 of republish') await write(id, 410);
    else continue;
    await sound();
  }
  for (let open = ids.size, round = 0; open > 0; round += 1) {
    await roads.workOff(stages);
    await sound();
    const rows = await engine.rows<{ id: string; code: number }>(
      'select id, status_code as code from public.ingestion_queue where status_code not in (400, 410) order by id',
    );
    open = rows.length;
    if (round > 9) throw new Error(`these do not end: ${JSON.stringify(rows)}`);
    for (const { id, code } of rows) await write(id, next[code] ?? Number.NaN);
    await sound();
  }
  expect(await engine.value('select count(*)::int from public.publication')).toBe(ids.size);
});
