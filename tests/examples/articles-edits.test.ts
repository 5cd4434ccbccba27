// Edits of articles: at 320 alone, with the old and new of what differs in the history, and what the site shows meanwhile.
import { describe, expect } from 'vitest';
import { publicationOf, publishable } from '../../supabase/functions/_articles/publication.ts';
import { PermanentError } from '../../supabase/functions/_millrace/mod.ts';
import { complete, curatorClaims, test } from '../support/examples/articles.ts';
import { failed, Worker } from '../support/worker.ts';

const edit = (fields: string) => `update public.ingestion_queue set ${fields} where id = $1`;

describe('the text is edited at 320 alone', () => {
  test.for<[codes: number[], code: string, hint: RegExp]>([
    [[], '300 (pending_review)', /310, then 320/],
    [[310], '310 (in_review)', /Write 320 first/],
    [[310, 330], '330 (approved)', /320 alone/],
    [[310, 540], '540 (rejected)', /320 alone/],
  ])('not after %s', async ([codes, code, hint], { articles, engine }) => {
    const id = await articles.reviewed(...codes);
    const project = await engine.database.connect('service_role');
    for (const [field, value] of Object.entries({
      title: `'x'`,
      summary: `'x'`,
      tags: `'{x}'`,
      thumbnail_url: `'/x'`,
    })) {
      const refusal = await engine.refusal(edit(`${field} = ${value}`), [id], project);
      expect(refusal).toMatchObject({ code: 'MR005', message: `${field} of article ${id} was edited at ${code}` });
      expect(refusal.hint).toMatch(hint);
    }
    expect(await articles.row(id)).toMatchObject(complete);
  });

  test('not at 400 nor 410, nor together with opening it', async ({ articles, engine }) => {
    const { id } = await articles.published();
    expect(await engine.refusal(edit(`title = 'x', summary = 'y'`), [id])).toMatchObject({
      message: `summary, title of article ${id} was edited at 400 (published)`,
      hint: 'Write 320 first, and edit then.',
    });
    expect((await engine.refusal(edit(`title = 'x', status_code = 320`), [id])).code).toBe('MR005');
    await articles.move(id, 320, 410);
    expect((await engine.refusal(edit(`title = 'x'`), [id])).code).toBe('MR005');
  });

  test('a text that the stages write before the review is no edit, and a person may not write it', async ({
    articles,
    engine,
  }) => {
    const { id } = await articles.insert({ url: 'https://looms.test/1', entry_type: 'manual' });
    await engine.rows(edit(`title = 'From the page'`), [id]);
    const project = await engine.database.connect('service_role');
    expect(await engine.refusal(edit(`title = 'By hand'`), [id], project)).toMatchObject({ code: 'MR005' });
    expect(await articles.row(id)).toMatchObject({ title: 'From the page', revision: 0, status_changes: null });
  });

  test('an article without a title is not approved until somebody gives it one', async ({ articles, engine }) => {
    const curator = await engine.database.connect('authenticated', curatorClaims('rick'));
    const { id } = await articles.insert({ ...complete, title: ' ' });
    await articles.move(id, 310);
    const refused = { code: 'MR005', message: `article ${id} was approved without a title` };
    for (const code of [310, 320]) {
      await articles.move(id, code);
      expect(await engine.refusal(edit('status_code = 330'), [id], curator)).toMatchObject({
        ...refused,
        hint: 'Write 320 and its title, then 330.',
      });
      expect(await articles.row(id)).toMatchObject({ status_code: code, summary: complete.summary });
    }
    await curator.query(edit(`title = 'Looms', status_code = 330`), [id]);
    expect((await articles.history(id)).at(-1)).toMatchObject({
      to_status: 330,
      changed_by: 'user:rick',
      changes: { title: { old: null, new: 'Looms' } },
    });
  });

  test('an edited article that was approved by a decision fails, and its error says how to bring it to the site', async ({
    articles,
    engine,
  }) => {
    const { id } = await articles.insert({ ...complete, title: null });
    await articles.move(id, 310);
    const [asked] = await engine.rows('select attempt_id from public.millrace_decisions where entity_id = $1', [id]);
    await engine.rows('select public.millrace_decide($1, $2)', [asked?.attempt_id, { verdict: 'approve' }]);
    const worker = await Worker.of(engine, 'publish', 'articles');
    const work = await worker.takeOne();
    let thrown = new PermanentError('none', 'none');
    try {
      publicationOf(publishable.parse(await articles.row(id)), {});
    } catch (error) {
      thrown = error as PermanentError;
    }
    const { code, message, permanent } = thrown;
    await worker.report(failed(work, { code, message, permanent }));
    expect([(await articles.row(id)).status_code, message]).toEqual([
      500,
      expect.stringMatching(/no title: write 300, 310, then 320/),
    ]);
    await articles.move(id, 300, 310, 320);
    await engine.rows(edit(`title = 'Looms'`), [id]);
    await articles.move(id, 330);
    await articles.publish(id);
    expect(await engine.value('select title from public.publication where queue_id = $1', [id])).toBe('Looms');
  });

  test('nothing is emptied', async ({ articles, engine }) => {
    const id = await articles.reviewed(310, 320);
    expect(await engine.refusal(edit(`summary = ' ', tags = '{}', title = null`), [id])).toMatchObject({
      code: 'MR005',
      message: `summary, tags, title of article ${id} was emptied`,
    });
  });
});

describe('the code after 320 says what differs since then', () => {
  test('over several edits, each with its revision', async ({ articles, engine }) => {
    const id = await articles.reviewed(310, 320);
    await engine.rows(edit(`title = 'Draft', summary = 'New summary'`), [id]);
    await engine.rows(edit(`title = 'New Title', tags = '{looms}'`), [id]);
    await engine.rows(edit(`summary = 'Old summary'`), [id]);
    expect(await articles.row(id)).toMatchObject({ revision: 3 });
    await articles.move(id, 330);
    await articles.publish(id);
    expect((await articles.history(id)).map(({ to_status, changes }) => [to_status, changes])).toEqual([
      [300, null],
      [310, null],
      [320, null],
      [330, { title: { old: 'Old Title', new: 'New Title' }, tags: { old: ['wool', 'looms'], new: ['looms'] } }],
      [400, null],
    ]);
  });

  test('with the last field written together with the code', async ({ articles, engine }) => {
    const id = await articles.reviewed(310, 320);
    await engine.rows(edit(`title = 'New Title', status_code = 310`), [id]);
    expect((await articles.history(id)).at(-1)).toMatchObject({
      to_status: 310,
      changes: { title: { old: 'Old Title', new: 'New Title' } },
    });
    await articles.move(id, 320, 310);
    expect((await articles.history(id)).at(-1)).toMatchObject({ to_status: 310, changes: null });
  });

  test('nothing when all is as it was', async ({ articles, engine }) => {
    const id = await articles.reviewed(310, 320);
    await engine.rows(edit(`title = 'Draft'`), [id]);
    await engine.rows(edit(`title = 'Old Title'`), [id]);
    await articles.move(id, 330);
    expect((await articles.history(id)).at(-1)).toMatchObject({ to_status: 330, changes: null });
  });

  test('an edit of a published article that is discarded takes its text back', async ({ articles, engine }) => {
    const { id } = await articles.published();
    await articles.move(id, 320);
    await engine.rows(edit(`title = 'Draft', tags = '{a,b}', summary = 'Draft'`), [id]);
    await articles.move(id, 400);
    expect(await articles.row(id)).toMatchObject({ ...complete, status_code: 400, status_changes: null });
    expect((await articles.history(id)).at(-1)).toMatchObject({ from_status: 320, to_status: 400, changes: null });
  });

  test('also long after its runs have been pruned', async ({ articles, engine }) => {
    const { id } = await articles.published();
    await engine.advance('400 days');
    await engine.sql.query('select millrace.prune()');
    expect(await engine.value('select count(*)::int from millrace.runs')).toBe(0);
    await articles.move(id, 320);
    await engine.sql.query(`update public.ingestion_queue set title = 'Newer' where id = $1`, [id]);
    await articles.move(id, 400);
    expect(await articles.row(id)).toMatchObject({ title: complete.title, status_code: 400 });
    expect(await engine.rows('select * from millrace.check_invariants()')).toEqual([]);
  });

  test('and one that is discarded after an earlier edit is 410 again, with that edit on the site', async ({
    articles,
    engine,
  }) => {
    const { id } = await articles.published();
    const site = () => engine.value('select title from public.publication where queue_id = $1', [id]);
    await articles.move(id, 320);
    await engine.rows(edit(`title = 'First edit'`), [id]);
    await articles.move(id, 410);
    // Before the first edit is on the site.
    await articles.move(id, 320);
    await engine.rows(edit(`title = 'Draft', summary = 'Draft'`), [id]);
    const curator = await engine.database.connect('authenticated', curatorClaims('ann'));
    await curator.query(edit('status_code = 400'), [id]);
    expect(await articles.row(id)).toMatchObject({ ...complete, title: 'First edit', status_code: 410 });
    expect((await articles.history(id)).at(-1)).toEqual({
      from_status: 320,
      to_status: 410,
      changed_by: 'user:ann',
      changes: null,
    });
    expect(await site()).toBe('Old Title');
    await articles.publish(id, 'republish');
    expect(await site()).toBe('First edit');
  });
});

test('an article under review cannot be deleted by anybody', async ({ articles, engine }) => {
  const id = await articles.reviewed(310);
  const remove = 'delete from public.ingestion_queue where id = $1';
  expect(await engine.refusal(remove, [id])).toMatchObject({
    code: 'MR005',
    message: `article ${id} is under review (310)`,
    hint: expect.stringContaining('Put it back (300)'),
  });
  await articles.move(id, 540);
  await engine.rows(remove, [id]);
  expect(await articles.history(id)).toEqual([]);
});

describe('track_publication_edit, as documented', () => {
  const track = 'select track_publication_edit($1, $2, $3, $4, $5) as id';
  const old = { title: 'Old Title', summary: 'Old summary' };

  test('records the fields that differ under the name given, and carries the article to 410', async ({
    articles,
    engine,
  }) => {
    const { id, publication } = await articles.published();
    await engine.sql.query('set search_path = public');
    const changed = { title: 'New Title', summary: 'Old summary' };
    const record = await engine.value<string>(track, [publication, id, old, changed, 'user:rick']);
    const edits = await engine.rows(
      'SELECT * FROM publication_edit_history WHERE publication_id = $1 ORDER BY changed_at DESC',
      [publication],
    );
    expect(edits).toEqual([
      {
        publication_id: publication,
        queue_id: id,
        history_id: record,
        changed_at: expect.any(Date),
        changed_by: 'user:rick',
        field_changes: { title: { old: 'Old Title', new: 'New Title' } },
      },
    ]);
    expect((await articles.history(id)).slice(-2).map((step) => [step.from_status, step.to_status])).toEqual([
      [400, 320],
      [320, 410],
    ]);
    await engine.value(track, [publication, id, changed, { ...changed, tags: ['yarn'] }, 'user:ann']);
    expect(
      await engine.rows(
        'select changed_by, field_changes from publication_edit_history order by history_id desc limit 1',
      ),
    ).toEqual([{ changed_by: 'user:ann', field_changes: { tags: { old: complete.tags, new: ['yarn'] } } }]);
    await engine.sql.query('reset search_path');
  });

  test('names nobody for what else its transaction writes', async ({ articles, engine }) => {
    const { id, publication } = await articles.published();
    await engine.sql.query('begin');
    await engine.value(`select public.track_publication_edit($1, $2, '{}', '{"title": "New"}', 'user:rick')`, [
      publication,
      id,
    ]);
    const other = await articles.reviewed(310);
    await engine.sql.query('commit');
    expect((await articles.history(other)).map((step) => step.changed_by)).toEqual(['user:postgres', 'user:postgres']);
  });

  test('returns null and moves nothing when nothing differs', async ({ articles, engine }) => {
    const { id, publication } = await articles.published();
    const steps = (await articles.history(id)).length;
    for (const [was, is] of [
      [old, old],
      [{}, { title: 'Old Title' }],
    ]) {
      expect(
        await engine.value(`select public.track_publication_edit($1, $2, $3, $4, 'user:rick')`, [
          publication,
          id,
          was,
          is,
        ]),
      ).toBeNull();
    }
    expect(await articles.history(id)).toHaveLength(steps);
  });

  test('refuses an unknown field, another’s publication and an article under edit', async ({ articles, engine }) => {
    const [one, two] = [await articles.published(), await articles.published()];
    const call = (publication: string, changes: object) =>
      engine.refusal(`select public.track_publication_edit($1, $2, '{}', $3, 'user:rick')`, [
        publication,
        one.id,
        changes,
      ]);
    expect(await call(one.publication, { slug: 'x' })).toMatchObject({
      code: 'MR002',
      message: expect.stringMatching(/^slug /),
    });
    expect(await call(two.publication, { title: 'x' })).toMatchObject({ code: 'MR003' });
    await articles.move(one.id, 320);
    expect(await call(one.publication, { title: 'x' })).toMatchObject({
      code: 'MR005',
      message: expect.stringContaining('it is 320'),
    });
  });
});
