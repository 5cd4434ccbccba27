// Values at which a row may enter without a run, beside those that begin one.
import { expect } from 'vitest';
import { historyOf, makeNotes } from '../../support/engine/status.ts';
import { test } from '../../support/engine.ts';

const insert = (code: number) => `insert into public.note (label, status_code) values ('x', ${code}) returning id`;

test('a row enters at a value that is listed in entries, without a run, and goes on from there by a move', async ({
  engine,
}) => {
  await makeNotes(engine, ({ entity: { status } }) => {
    Object.assign(status, { entries: [510], moves: [...(status.moves as unknown[]), [510, 110]] });
  });
  const id = await engine.value<string>(insert(510));
  expect(await engine.rows('select id from millrace.runs')).toEqual([]);
  expect(await historyOf(engine, id)).toEqual(['>510 user:postgres']);
  await engine.sql.query('update public.note set status_code = 110');
  expect(await engine.run(id)).toMatchObject({ status: 'running' });
  expect(await engine.refusal(insert(500))).toMatchObject({ code: 'MR005' });
});

test('entries may name only values that something shows', async ({ engine }) => {
  const refusal = await makeNotes(engine, ({ entity: { status } }) => {
    Object.assign(status, { entries: [999] });
  }).catch((error) => error);
  expect(refusal.message).toContain('999 is a value that nothing shows');
});
