// From one release to the next: what comes out, and who is not disturbed by it.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { beforeAll, describe, expect } from 'vitest';
import { createBareDatabase, type TestDatabase } from '../support/database.ts';
import { compiled } from '../support/definitions.ts';
import { defineFamily, numbers, spawnAll, startFolders } from '../support/engine/children.ts';
import { expectOver, finishAll } from '../support/engine/random-ending.ts';
import { makeNextLevel, type NextLevel, snapshot } from '../support/engine/releases.ts';
import { chain, test } from '../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../support/sessions.ts';
import { completed, failed, Worker, waiting } from '../support/worker.ts';

let next: NextLevel;
beforeAll(async () => {
  next = await makeNextLevel();
});

const definition = compiled({
  pipeline: 'flow',
  entity: { table: 'public.items', key: 'id', projection: 'columns', metadata: 'about' },
  stages: [
    { name: 'find', function: 'find', limits: { concurrency: { column: 'label', limit: 2 } } },
    { name: 'sort', function: 'sort', needs: ['find'] },
  ],
});

/** A database of a project that has one pipeline, after `install`. */
async function projectWith(install: string): Promise<{ database: TestDatabase; owner: pg.Client }> {
  const database = await createBareDatabase();
  const owner = await database.connect();
  await owner.query(install);
  await owner.query('create table public.items (id bigint primary key, label text, about jsonb)');
  await owner.query(`select millrace.add_columns('public.items', 'find', 'sort')`);
  await owner.query('select millrace.define($1)', [definition]);
  return { database, owner };
}

const refusal = (client: pg.Client, text: string) =>
  client.query(text).then(
    () => 'not refused',
    async (error) => {
      await client.query('');
      return { code: error.code, message: error.message, hint: error.hint };
    },
  );

describe('an upgrade', () => {
  test('makes of an install what an install of the next level makes', async () => {
    const upgraded = await projectWith(next.installFormer);
    await upgraded.owner.query(next.upgrade);
    const installed = await projectWith(next.installNext);
    expect(await snapshot(upgraded.owner)).toEqual(await snapshot(installed.owner));
    const { rows } = await upgraded.owner.query('select e.level, e.release from millrace.engine() e');
    expect(rows).toEqual([{ level: next.level, release: '99.0.0' }]);
    expect((await upgraded.owner.query('select level from millrace.releases order by 1')).rows).toEqual([
      { level: next.level - 1 },
      { level: next.level },
    ]);
    expect((await upgraded.owner.query('select millrace.set_up()')).rows).toEqual([{ set_up: [] }]);
    await upgraded.owner.query('insert into public.items (id, find_status) values (1, $1)', ['queued']);
    expect((await upgraded.owner.query('select * from millrace.check_invariants()')).rows).toEqual([]);
    expect(await refusal(upgraded.owner, next.upgrade)).toMatchObject({
      code: 'MR004',
      message: expect.stringContaining(`but this database is at level ${next.level}`),
    });
    await upgraded.database.drop();
    await installed.database.drop();
  });

  test('holds the functions that have changed, and names those that somebody has edited', async () => {
    const written = [...next.upgrade.matchAll(/^create or replace function ([\w.]+)/gm)].map(([, name]) => name);
    expect(written.sort()).toEqual([
      'millrace.engine',
      'millrace.lasting',
      'millrace.live_workers',
      'millrace.note_next',
      'millrace.setting',
      'public.millrace_lasting',
    ]);
    const { database, owner } = await projectWith(next.installFormer);
    const edit = async (name: string, by: (text: string) => string) => {
      const { rows } = await owner.query('select pg_get_functiondef($1::regprocedure) as text', [name]);
      await owner.query(by(rows[0].text));
    };
    await edit('millrace.lasting(int)', (text) => text.replace('former', 'edited'));
    await edit('millrace.sweep()', (text) => text.replace(/\bbegin\b/i, 'begin -- By hand.'));
    const warnings: string[] = [];
    owner.on('notice', ({ severity, message }) => severity === 'WARNING' && warnings.push(message ?? ''));
    await owner.query(next.upgrade);
    const named =
      'functions of Millrace were edited in this database: ' +
      'millrace.lasting(integer) (replaced), millrace.sweep() (kept as it is)';
    expect(warnings).toEqual([named]);
    const log = await owner.query(`select level, message from millrace.log where code = 'functions_edited'`);
    expect(log.rows).toEqual([{ level: 'warning', message: named }]);
    expect((await owner.query('select millrace.lasting(1)')).rows).toEqual([{ lasting: 'next 1' }]);
    const { rows } = await owner.query(`select prosrc from pg_proc where proname = 'sweep'`);
    expect(rows[0].prosrc).toContain('-- By hand.');
    await database.drop();
  });

  test('keeps what users built on the engine, or names it and changes nothing', async ({ engine }) => {
    await engine.sql.query(`
      create view public.depth as select pipeline, stage from millrace.paused;
      create view public.busy as select millrace.live_workers(s.id) as live from millrace.stages s;
      create view public.letters as select * from millrace.dead_letters`);
    const before = await snapshot(engine.sql);
    expect(await refusal(engine.sql, next.upgrade)).toEqual({
      code: '2BP01',
      message: expect.stringContaining('drop these first: view public.busy depends on function millrace.live_workers'),
      hint: expect.stringContaining('Keep their text'),
    });
    await engine.sql.query('drop view public.busy');
    expect(await refusal(engine.sql, next.upgrade)).toMatchObject({
      message:
        'the upgrade replaces what others depend on, drop these first: view public.depth depends on view millrace.paused',
    });
    await engine.sql.query(
      'create view public.busy as select millrace.live_workers(s.id) as live from millrace.stages s',
    );
    expect(await snapshot(engine.sql)).toEqual(before);
    await engine.sql.query('drop view public.busy; drop view public.depth');
    await engine.sql.query(next.upgrade);
    expect((await engine.sql.query('select count(*) from public.letters')).rows.length).toBeGreaterThan(0);
  });

  test('of a busy database says so and leaves it as it was', async ({ engine }) => {
    await engine.pipeline(chain(['one', 'two']));
    const [id] = await engine.queued('one');
    const user = await engine.database.connect();
    await user.query('begin');
    await user.query('update public.items set label = $1 where id = $2', ['mine', id]);
    const before = await snapshot(engine.sql);
    const wait = (time: string) =>
      engine.sql.query(`update millrace.settings set value = $1 where name = 'upgrade_patience'`, [time]);
    await wait('0.1 seconds');
    expect(await refusal(engine.sql, next.upgrade)).toEqual({
      code: '55P03',
      message: 'the database is busy, try again: somebody holds table items. Millrace stays as it was',
      hint: expect.stringContaining('or let it wait longer'),
    });
    expect(await snapshot(engine.sql)).toEqual(before);
    // It waits for nobody while it holds something, so it stands in nobody's way either.
    await wait('10 seconds');
    const upgrading = engine.sql.query(next.upgrade);
    await user.query(`select pg_sleep(0.3)`);
    await user.query(`update public.items set label = 'still mine' where id = $1`, [id]);
    await user.query('commit');
    await upgrading;
    expect(await engine.statuses(id)).toEqual({ one: 'queued', two: 'pending' });
  });

  test('stands in no definition’s way that has just begun', async ({ engine }) => {
    await engine.pipeline(chain(['one']));
    await engine.sql.query('create table public.notes (id bigint primary key)');
    const gate = await openTransaction(engine);
    await gate.query('lock table millrace.limits in access exclusive mode');
    const definer = await engine.database.connect();
    const entity = { table: 'public.notes', key: 'id', projection: 'none' };
    const defined = begin(
      definer.query('select millrace.define($1)', [compiled({ pipeline: 'notes', entity, stages: [{ name: 'one' }] })]),
    );
    await untilBlocked(engine, definer);
    const upgrader = await engine.database.connect();
    const upgraded = begin(upgrader.query(next.upgrade));
    await untilBlocked(engine, upgrader);
    await gate.query('commit');
    await Promise.all([defined, upgraded]);
  });

  test('leaves whatever is under way to end as it would have', async ({ engine }) => {
    await defineFamily(engine);
    await engine.pipeline(
      [
        { name: 'draft', retry: { max_attempts: 5 } },
        { name: 'review', kind: 'manual', needs: ['draft'], decision: { schema: { type: 'object' } } },
        { name: 'render', kind: 'external', needs: ['review'], completion: { callback: true, deadline_seconds: 3600 } },
      ],
      { table: 'public.papers' },
    );
    const [folder] = await startFolders(engine);
    await spawnAll(engine, numbers(1, 3));
    const papers = await engine.rows<{ id: string }>(
      `insert into public.papers (label) select 'paper' from generate_series(1, 6) returning id`,
    );
    for (const { id } of papers) await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
    const worker = await Worker.of(engine, 'draft');
    const [asked, sent, late, held, ...more] = await worker.take(5);
    if (!asked || !sent || !late || !held) throw new Error('there was too little to claim');
    await worker.report(completed(asked), completed(sent), failed(late));
    const decision = `select attempt_id from public.millrace_decisions where entity_id = $1`;
    const attempt = await engine.value(decision, [sent.entity_id]);
    await engine.sql.query(`select public.millrace_decide($1, '{"ok": true}')`, [attempt]);
    const renderer = await Worker.of(engine, 'render');
    await renderer.report(waiting(await renderer.takeOne(), 'job-1'));
    const states = await engine.rows(
      `select s.name, a.state::text, count(*)::int from millrace.attempts a join millrace.stages s on s.id = a.stage_id
       where a.state in ('queued', 'started', 'waiting') group by 1, 2 order by 1, 2`,
    );
    expect(states.map((row) => Object.values(row).join(' '))).toEqual([
      'draft queued 2',
      'draft started 2',
      'render waiting 1',
      'review waiting 1',
      'scan queued 3',
      'split waiting 1',
    ]);
    await engine.sql.query(next.upgrade);
    await engine.expectSound();
    expect(await worker.renew([held])).toEqual({ renewed: 2, lost: [] });
    expect(await worker.report(completed(held), ...more.map((item) => completed(item)))).toEqual([
      'accepted',
      'accepted',
    ]);
    await finishAll(engine);
    await expectOver(engine, new Map());
    const ended = await engine.rows(
      `select p.name, r.status::text, count(*)::int from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
       group by 1, 2 order by 1`,
    );
    expect(ended.map((row) => Object.values(row).join(' '))).toEqual([
      'files completed 3',
      'flow completed 6',
      'folder completed 1',
    ]);
    expect(await engine.value('select publish_status from public.folders where id = $1', [folder])).toBe('completed');
  });

  test('makes those who work and write meanwhile wait, and fails none of them', async ({ engine }) => {
    await engine.pipeline(chain(['one', 'two']));
    await engine.queued('one', 300);
    let isOver = false;
    let done = 0;
    const work = async (stage: string) => {
      const worker = await Worker.of(engine, stage);
      for (let { batch } = await worker.claim(10); !isOver || batch.length > 0; ) {
        done += batch.length;
        const answer = await worker.complete(
          batch.map((item) => completed(item)),
          10,
        );
        expect(answer.items.map(({ verdict }) => verdict)).toEqual(batch.map(() => 'accepted'));
        ({ batch } = answer);
      }
      await worker.leave();
    };
    const write = async () => {
      const user = await engine.database.connect();
      for (; !isOver; await sleep(10)) await user.query(`insert into public.items (one_status) values ('queued')`);
    };
    const all = Promise.all([work('one'), work('one'), work('two'), write()]);
    while (done < 50) await sleep(5);
    await engine.sql.query(next.upgrade);
    const before = done;
    while (done < before + 50) await sleep(5);
    isOver = true;
    await all;
    await finishAll(engine);
    expect(await engine.rows('select distinct status from millrace.runs')).toEqual([{ status: 'completed' }]);
  });
});
