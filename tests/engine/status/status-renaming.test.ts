// Values that a definition changes: only while no row shows them and no run may come to them.

import { expect } from 'vitest';
import { makeLinks, makeNotes, type StatusDefinition } from '../../support/engine/status.ts';
import { type Engine, type Row, type StageDefinition, test } from '../../support/engine.ts';
import { failed, runStage, Worker } from '../../support/worker.ts';

const insert = (engine: Engine, code: number, label = 'a') =>
  engine.value<string>('insert into public.note (label, status_code) values ($1, $2) returning id', [label, code]);
const codeOf = (engine: Engine, id: string) =>
  engine.value<number>('select status_code from public.note where id = $1', [id]);
const stage = (definition: StatusDefinition, name: string) =>
  definition.stages.find((one) => one.name === name) as StageDefinition & { shows: Row };

/** The definition with each of these numbers in place of another, wherever it stands. */
function renumbered(definition: StatusDefinition, numbers: Record<number, number>): StatusDefinition {
  const text = JSON.stringify(definition, (_key, value) =>
    value && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).map(([key, one]) => [numbers[Number(key)] ?? key, one]))
      : (typeof value === 'number' && numbers[value]) || value,
  );
  return JSON.parse(text);
}

test('codes are renumbered while nothing shows them, and rows begin at the new ones', async ({ engine }) => {
  const definition = await makeNotes(engine);
  await engine.define(renumbered(definition, { 110: 120, 120: 110, 111: 116 }));
  const id = await insert(engine, 120);
  await runStage(engine, 'fetch', 'notes');
  expect(await codeOf(engine, id)).toBe(110);
  await engine.expectSound();
});

test('a code is kept while a row shows it, or a run may come to it', async ({ engine }) => {
  const definition = await makeNotes(engine);
  const id = await insert(engine, 110);
  const refused = async (numbers: Record<number, number>) =>
    (await engine.refusedDefinition(renumbered(definition, numbers))).message;
  expect(await refused({ 110: 115 })).toBe(
    'entity.status shows another value in place of 110, but there are rows that show it: 1, and live runs: 1',
  );
  expect(await refused({ 400: 450 })).toContain('but there are rows that show it: 0, and live runs: 1');
  await engine.sql.query('select millrace.cancel(id) from millrace.runs');
  expect(await refused({ 500: 505 })).toContain('but there are rows that show it: 1, and live runs: 0');
  await engine.define(renumbered(definition, { 110: 115, 400: 450 }));
  expect(await codeOf(engine, id)).toBe(500);
  await engine.sql.query('update public.note set status_code = 115');
  await engine.expectSound();
});

test('a failure that gets a value of its own keeps what it shows, and so does one that loses it', async ({
  engine,
}) => {
  const definition = await makeNotes(engine);
  const ids = [await insert(engine, 110), await insert(engine, 110)] as const;
  const worker = await Worker.of(engine, 'fetch', 'notes');
  const [one, two] = await worker.take(2);
  if (!one || !two) throw new Error('nothing was claimed');
  await worker.report(
    failed(one, { code: 'gone', permanent: true }),
    failed(two, { code: 'not_found', permanent: true }),
  );
  const shown = async () => [await codeOf(engine, ids[0]), await codeOf(engine, ids[1])];
  expect(await shown()).toEqual([500, 510]);
  stage(definition, 'fetch').shows.failed = { gone: 510 };
  await engine.define(definition);
  expect(await shown()).toEqual([500, 510]);
  await engine.expectSound();
  await engine.sql.query('update public.note set status_code = 110');
  expect(await shown()).toEqual([110, 110]);
});

test('a stage gets a value for the time until a retry while runs are live', async ({ engine }) => {
  const definition = await makeLinks(engine, (links) => {
    delete stage(links, 'scrape').shows.backoff;
  });
  await engine.sql.query(`insert into public.link (status) values ('new')`);
  await runStage(engine, 'classify', 'page_links');
  const scrape = await Worker.of(engine, 'scrape', 'page_links');
  await scrape.report(failed(await scrape.takeOne()));
  stage(definition, 'scrape').shows.backoff = 'error';
  await engine.define(definition);
  await engine.expectSound();
  expect(await engine.value('select status from public.link')).toBe('classified');
});
