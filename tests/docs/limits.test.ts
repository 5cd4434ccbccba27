import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { type Engine, test } from '../support/engine.ts';
import { type Claimed, completed } from '../support/worker.ts';
import { changed, messageOf, type OpenPage, testPage } from './page.ts';
import { claim, finish, start } from './play.ts';

const open = testPage('limits');

/** Runs of downloads to these hosts, in order. */
async function queue(engine: Engine, page: OpenPage, hosts: string[]): Promise<string[]> {
  const runs: string[] = [];
  for (const [n, host] of hosts.entries()) {
    const id = await engine.value('insert into public.downloads (url) values ($1) returning id', [
      `https://${host}/${n}`,
    ]);
    runs.push(await start(engine, page.exported('downloads'), id));
  }
  return runs;
}

const many = (count: number, host: (n: number) => string) => Array.from({ length: count }, (_, n) => host(n));
const hosts = (items: Claimed[]) => items.map(({ entity }) => new URL(String(entity.url)).host);
const slots = 'select key, count(*)';

test('ten a minute', async ({ engine }) => {
  const page = await open(engine);
  const downloads = page.exported<PipelineDefinition>('downloads');
  await queue(
    engine,
    page,
    many(30, (n) => `h${n}.test`),
  );
  expect((await claim(engine, downloads, 'fetch')).items).toHaveLength(10);
  expect((await claim(engine, downloads, 'fetch')).items).toEqual([]);
  await engine.advance('30 seconds');
  expect((await claim(engine, downloads, 'fetch')).items).toHaveLength(5);
  await engine.advance('1 hour');
  expect((await claim(engine, downloads, 'fetch')).items, 'twenty in work').toHaveLength(5);
  await engine.advance('1 hour');
  expect((await claim(engine, downloads, 'fetch')).items).toEqual([]);
  expect(await page.run(engine, slots)).toHaveLength(20);
});

test('two for each host, which take turns', async ({ engine }) => {
  const page = await open(engine);
  const downloads = page.exported<PipelineDefinition>('downloads');
  await queue(engine, page, [...many(8, () => 'big.test'), 'small.test', 'other.test']);
  const { worker, items } = await claim(engine, downloads, 'fetch');
  expect(hosts(items).sort()).toEqual(['big.test', 'big.test', 'other.test', 'small.test']);
  expect(await page.run(engine, slots)).toMatchObject([{ key: 'big.test', count: '2' }, {}, {}]);
  await worker.report(...items.map((item) => completed(item)));
  expect(hosts((await claim(engine, downloads, 'fetch')).items)).toEqual(['big.test', 'big.test']);
});

test('no more than 50 unfinished at the later stage', async ({ engine }) => {
  const page = await open(engine);
  const downloads = page.exported<PipelineDefinition>('downloads');
  await queue(
    engine,
    page,
    many(60, (n) => `h${n}.test`),
  );
  for (let round = 0; round < 5; round++) {
    await engine.advance('1 minute');
    expect(await finish(engine, downloads, 'fetch')).toHaveLength(10);
  }
  await engine.advance('1 minute');
  expect((await claim(engine, downloads, 'fetch')).items).toEqual([]);
  const index = await claim(engine, downloads, 'index', 3);
  expect((await claim(engine, downloads, 'fetch')).items, 'three are in work').toEqual([]);
  await index.worker.report(...index.items.map((item) => completed(item)));
  expect((await claim(engine, downloads, 'fetch')).items).toHaveLength(3);
});

test('a paused stage hands out nothing until it goes on', async ({ engine }) => {
  const page = await open(engine);
  const downloads = page.exported<PipelineDefinition>('downloads');
  await queue(engine, page, ['h.test']);
  await page.run(engine, 'select millrace.pause');
  expect((await claim(engine, downloads, 'fetch')).items ?? []).toEqual([]);
  const health = await page.run(engine, 'select stage, enabled');
  expect(health.find(({ stage }) => stage === 'fetch')).toMatchObject({ enabled: false, ready: '1' });
  await page.run(engine, 'select millrace.unpause');
  expect((await claim(engine, downloads, 'fetch')).items).toHaveLength(1);
});

test('each error of limits has the words of its page', async ({ engine }) => {
  const page = await open(engine);
  const downloads = page.exported<PipelineDefinition>('downloads');
  const backPressure = { stage: 'fetch', backlog: 1 };
  page.expectPromised(await messageOf(() => changed(downloads, 'index', { limits: { backPressure } })));
  const column = changed(downloads, 'fetch', { limits: { concurrency: { column: 'host', limit: 1 } } });
  page.expectPromised(await messageOf(() => engine.define(column)));
});
