// Values that a definition changes while rows stand there: the rows show the new ones, with a history, and go on.

import { expect } from 'vitest';
import { compiled } from '../support/definitions.ts';
import { type Engine, type Row, type StageDefinition, test } from '../support/engine.ts';
import { untilBlocked } from '../support/sessions.ts';
import { historyOf, linksDefinition, makeLinks, makeNotes, type StatusDefinition } from '../support/status.ts';
import { completed, failed, runStage, Worker } from '../support/worker.ts';

const insert = (engine: Engine, code: number, label = 'a') =>
  engine.value<string>('insert into public.note (label, status_code) values ($1, $2) returning id', [label, code]);
const codeOf = (engine: Engine, id: string) =>
  engine.value<number>('select status_code from public.note where id = $1', [id]);
const write = (engine: Engine, id: string, code: number) =>
  engine.sql.query('update public.note set status_code = $2 where id = $1', [id, code]);
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

test('codes that are renumbered are those of the rows too, and work in progress goes on', async ({ engine }) => {
  const definition = await makeNotes(engine, ({ entity: { status } }) => {
    Object.assign(status, { entries: [510], moves: [[510, 110]] });
  });
  const published = await insert(engine, 110);
  const reviewed = await insert(engine, 110);
  for (const name of ['fetch', 'score', 'summarize', 'tag']) await runStage(engine, name, 'notes');
  for (const code of [310, 330]) await write(engine, published, code);
  await runStage(engine, 'publish', 'notes');
  for (const code of [310, 320]) await write(engine, reviewed, code);
  const missing = await insert(engine, 510);
  const started = await insert(engine, 110);
  const worker = await Worker.of(engine, 'fetch', 'notes');
  const item = await worker.takeOne();
  const queued = await insert(engine, 110);
  await engine.advance('1 minute');
  // 110 and 120 change places.
  const numbers = { 110: 120, 120: 110, 111: 116, 310: 315, 320: 325, 400: 450, 510: 555 };
  await engine.define(renumbered(definition, numbers));
  const ids = [published, reviewed, missing, started, queued];
  const codes: number[] = [];
  for (const id of ids) codes.push(await codeOf(engine, id));
  expect(codes).toEqual([450, 325, 555, 116, 120]);
  expect((await historyOf(engine, started)).slice(-2)).toEqual(['110>111 agent:fetch', '111>116 system:auto']);
  expect(
    await engine.value('select duration_ms::int from public.note_history where note_id = $1 order by id desc limit 1', [
      started,
    ]),
  ).toBe(60_000);
  await engine.expectSound();
  await worker.report(completed(item));
  expect(await codeOf(engine, started)).toBe(110);
  await write(engine, reviewed, 330);
  await write(engine, missing, 120);
  expect((await engine.refusal('update public.note set status_code = 111 where id = $1', [queued])).message).toContain(
    'which is no value of pipeline notes',
  );
});

test('a failure that gets a value of its own is shown by it, and so is one that loses it', async ({ engine }) => {
  const definition = await makeNotes(engine);
  const ids = [await insert(engine, 110), await insert(engine, 110)] as const;
  const worker = await Worker.of(engine, 'fetch', 'notes');
  const [one, two] = await worker.take(2);
  if (!one || !two) throw new Error('nothing was claimed');
  await worker.report(
    failed(one, { code: 'gone', permanent: true }),
    failed(two, { code: 'not_found', permanent: true }),
  );
  expect([await codeOf(engine, ids[0]), await codeOf(engine, ids[1])]).toEqual([500, 510]);
  stage(definition, 'fetch').shows.failed = { gone: 510 };
  await engine.define(definition);
  expect([await codeOf(engine, ids[0]), await codeOf(engine, ids[1])]).toEqual([510, 500]);
});

test('where one of two places of a value changes, the run says which of the rows is meant', async ({ engine }) => {
  const definition = await makeLinks(engine);
  const [retried, read] = await engine.rows<{ id: string }>(
    `insert into public.link (status) values ('new'), ('new') returning id`,
  );
  const classify = await Worker.of(engine, 'classify', 'page_links');
  const [first, second] = await classify.take(2);
  if (!first || !second) throw new Error('nothing was claimed');
  await classify.report(failed(first), completed(second));
  const scrape = await Worker.of(engine, 'scrape', 'page_links');
  await scrape.report(failed(await scrape.takeOne()));
  const shown = async () => (await engine.rows('select status from public.link order by id')).map((row) => row.status);
  expect([retried?.id, read?.id, await shown()]).toEqual(['1', '2', ['error', 'error']]);
  const { values } = definition.entity.status as { values: { work: Row } };
  values.work.blocked = ['Waits to be fetched again'];
  stage(definition, 'scrape').shows.backoff = 'blocked';
  await engine.define(definition);
  expect(await shown()).toEqual(['error', 'blocked']);
  await engine.define(linksDefinition);
  expect(await shown()).toEqual(['error', 'error']);
});

test('whoever holds a row is waited for, and goes on', async ({ engine }) => {
  const definition = await makeNotes(engine);
  const id = await insert(engine, 110);
  const other = await engine.database.connect();
  await other.query('begin');
  await other.query('select from public.note for update');
  const definer = await engine.database.connect();
  const defined = definer.query('select millrace.define($1)', [compiled(renumbered(definition, { 110: 115 }))]);
  await untilBlocked(engine, definer);
  await other.query(`update public.note set label = 'b'`);
  await other.query('commit');
  await defined;
  expect(await codeOf(engine, id)).toBe(115);
});
