// Gates in a status column: the value of a row that waits, and the path of one that does not.
import { expect } from 'vitest';
import { makeLinks, makeNotes, type StatusDefinition, valuesOf } from '../../support/engine/status.ts';
import { type Engine, test } from '../../support/engine.ts';
import { runStage } from '../../support/worker.ts';

const sweep = (engine: Engine) => engine.sql.query('select millrace.sweep()');
const oncePerMinute = { rate: { count: 1, per_seconds: 60 } };

/** Puts a gate between the first two stages of the notes. */
const admitted = (limits?: object) => (definition: StatusDefinition) => {
  const [fetch, score, ...rest] = definition.stages as [object, object];
  const gate = { name: 'admit', kind: 'gate', needs: ['fetch'], ...(limits && { limits }) };
  const status = definition.entity.status as { values: { discovery: object }; layers: { discovery: object } };
  Object.assign(status.values.discovery, { 115: ['to_admit', 'Waits'], 116: ['admitted', 'May go on'] });
  Object.assign(status.layers.discovery, { stages: ['fetch', 'admit', 'score'] });
  definition.stages = [
    fetch,
    { ...gate, shows: { queued: 115, completed: 116 } },
    { ...score, needs: ['admit'] },
    ...rest,
  ] as StatusDefinition['stages'];
};

/** classify → route → scrape in words: what is classified waits at the gate. */
const routed = (definition: StatusDefinition) => {
  const [classify, scrape, extract] = definition.stages as [object, object, object];
  const status = definition.entity.status as { values: { work: object } };
  Object.assign(status.values.work, { queued: ['To be fetched'] });
  const shown = (scrape as { shows: object }).shows;
  definition.stages = [
    classify,
    {
      name: 'route',
      kind: 'gate',
      needs: ['classify'],
      when: '$.entity.label == "job"',
      limits: oncePerMinute,
      shows: { queued: 'classified', completed: 'classified' },
    },
    { ...scrape, needs: ['route'], shows: { ...shown, queued: 'queued' } },
    extract,
  ] as StatusDefinition['stages'];
};

const insertNote = (engine: Engine) =>
  engine.value<string>(`insert into public.note (label, status_code) values ('a', 110) returning id`);
const link = async (engine: Engine, id: string) =>
  engine.value<string>('select status from public.link where id = $1', [id]);

test('a row that passes a gate at once has the gate’s values in its history', async ({ engine }) => {
  await makeNotes(engine, admitted());
  const id = await insertNote(engine);
  await runStage(engine, 'fetch', 'notes');
  expect(await valuesOf(engine, id)).toEqual([110, 111, 112, 115, 116, 120]);
});

test('a row that waits at a gate shows so, and goes on from there', async ({ engine }) => {
  await makeNotes(engine, admitted(oncePerMinute));
  const [first, second] = [await insertNote(engine), await insertNote(engine)];
  await runStage(engine, 'fetch', 'notes');
  expect(await valuesOf(engine, first)).toEqual([110, 111, 112, 115, 116, 120]);
  expect(await valuesOf(engine, second)).toEqual([110, 111, 112, 115]);
  await engine.advance('1 minute');
  await sweep(engine);
  expect(await valuesOf(engine, second)).toEqual([110, 111, 112, 115, 116, 120]);
});

test('one word may stand for what is classified and what waits at the gate', async ({ engine }) => {
  await makeLinks(engine, routed);
  const insert = `insert into public.link (label, status) values ($1, 'new') returning id`;
  const [job, late, post] = [
    await engine.value<string>(insert, ['job']),
    await engine.value<string>(insert, ['job']),
    await engine.value<string>(insert, ['post']),
  ];
  await runStage(engine, 'classify', 'page_links');
  expect([await link(engine, job), await link(engine, late), await link(engine, post)]).toEqual([
    'queued',
    'classified',
    'queued',
  ]);
  await engine.advance('1 minute');
  await sweep(engine);
  expect(await link(engine, late)).toBe('queued');
});

test('a person sends a row back to a gate by its value', async ({ engine }) => {
  await makeLinks(engine, routed);
  const id = await engine.value<string>(`insert into public.link (label, status) values ('job', 'new') returning id`);
  await runStage(engine, 'classify', 'page_links');
  expect(await link(engine, id)).toBe('queued');
  await engine.sql.query(`update public.link set status = 'classified' where id = $1`, [id]);
  expect(await link(engine, id)).toBe('classified');
  await engine.advance('1 minute');
  await sweep(engine);
  expect(await link(engine, id)).toBe('queued');
});

test('a gate that a row fails at shows what failures show', async ({ engine }) => {
  await makeLinks(engine, routed);
  await engine.sql.query(`select millrace.pause('page_links', 'route')`);
  const id = await engine.value<string>(`insert into public.link (label, status) values ('job', 'new') returning id`);
  await runStage(engine, 'classify', 'page_links');
  const run = await engine.value('select max(id) from millrace.runs');
  await engine.sql.query(`select millrace.fail_stage($1, 'route', 'no room')`, [run]);
  expect(await link(engine, id)).toBe('dead');
});

test('a gate says what it shows, and no started', async ({ engine }) => {
  const refusalOf = async (shows?: object) => {
    try {
      await makeLinks(engine, (definition) => {
        routed(definition);
        const gate = definition.stages[1] as { shows?: object };
        delete gate.shows;
        if (shows) gate.shows = shows;
      });
    } catch (error) {
      await engine.sql.query('drop table public.link');
      return (error as Error).message;
    }
    throw new Error('was not refused');
  };
  expect(await refusalOf()).toMatch(/^stages\.route\.shows is missing, but the projection is status/);
  expect(await refusalOf({ queued: 'classified', started: 'scraping', completed: 'classified' })).toMatch(
    /stages\.route\.shows has the unknown option started/,
  );
  expect(await refusalOf({ queued: 'classified' })).toMatch(/shows\.completed is missing/);
});
