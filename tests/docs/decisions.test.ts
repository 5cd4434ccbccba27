import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { type Engine, test } from '../support/engine.ts';
import { changed, messageOf, testPage } from './page.ts';
import { errorOf, finish, start, states, status, sweep } from './play.ts';

const open = testPage('decisions');
const [owner, stranger] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];

/** A user's session, that asks as engine.rows() does. */
async function user(engine: Engine, sub: string) {
  const client = await engine.database.connect('authenticated', { sub });
  return { rows: async <T>(statement: string) => (await client.query(statement)).rows as T[] };
}

/** A post that waits for its review. */
async function drafted(engine: Engine, posts: PipelineDefinition) {
  const id = await engine.value('insert into public.posts (owner) values ($1) returning id', [owner]);
  const run = await start(engine, posts, id);
  await finish(engine, posts, 'draft');
  const attempt = await engine.value<string>('select max(attempt_id) from public.millrace_decisions');
  return { run, attempt };
}

test('the owner sees the question and decides; the stage after it is asked for its condition', async ({ engine }) => {
  const page = await open(engine);
  const posts = page.exported<PipelineDefinition>('posts');
  const { run, attempt } = await drafted(engine, posts);
  expect(await states(engine, run)).toEqual({ draft: 'completed', review: 'waiting', publish: 'pending' });
  const me = await user(engine, owner);
  const [question] = await page.run(me, 'select attempt_id', {});
  expect(question).toMatchObject({ attempt_id: attempt, schema: { required: ['verdict'] } });
  expect(await page.run(engine, 'select stage, entity_id')).toHaveLength(1);
  const decide = () => page.run(me, 'select public.millrace_decide', { 77: attempt });
  expect(await decide()).toMatchObject([{ millrace_decide: { verdict: 'accepted' } }]);
  expect(await decide()).toMatchObject([{ millrace_decide: { verdict: 'duplicate' } }]);
  const [publish] = await finish(engine, posts, 'publish');
  expect(publish?.needs).toEqual({ review: { decision: { verdict: 'accept' }, decided_by: owner } });
  expect(await page.run(engine, 'select entity_id, decision', { 42: run })).toMatchObject([
    { decided_by: owner, closed_why: 'decided' },
  ]);
  const otherwise = `select public.millrace_decide(${attempt}, '{"verdict": "reject"}')`;
  page.expectPromised(await messageOf(() => me.rows(otherwise)));
});

test('a rejected post is not published, and its run is completed', async ({ engine }) => {
  const posts = (await open(engine)).exported<PipelineDefinition>('posts');
  const { run, attempt } = await drafted(engine, posts);
  await engine.rows(`select public.millrace_decide($1, '{"verdict": "reject", "note": "too long"}')`, [attempt]);
  expect(await states(engine, run)).toMatchObject({ review: 'completed', publish: 'skipped' });
  expect(await status(engine, run)).toBe('completed');
});

test('an answer must fit the schema, and come from somebody whom a policy lets decide', async ({ engine }) => {
  const page = await open(engine);
  const { attempt } = await drafted(engine, page.exported('posts'));
  const [me, other] = [await user(engine, owner), await user(engine, stranger)];
  const maybe = `select public.millrace_decide(${attempt}, '{"verdict": "maybe"}')`;
  page.expectPromised(await messageOf(() => me.rows(maybe)));
  page.expectPromised(await messageOf(() => other.rows(maybe)));
});

test.for([undefined, 'continue'] as const)(
  'the deadline ends a question that nobody answers, with onFailure: %s',
  async (onFailure, { engine }) => {
    const page = await open(engine);
    const posts = page.exported<PipelineDefinition>('posts');
    await engine.define(changed(posts, 'review', { onFailure }));
    const { run, attempt } = await drafted(engine, posts);
    await engine.advance('71 hours');
    await sweep(engine);
    expect(await status(engine, run)).toBe('running');
    await engine.advance('2 hours');
    await sweep(engine);
    expect(await status(engine, run)).toBe(onFailure ? 'completed' : 'failed');
    expect(await errorOf(engine, run)).toBe('nobody decided before the deadline');
    const late = `select public.millrace_decide(${attempt}, '{"verdict": "accept"}')`;
    page.expectPromised(await messageOf(() => engine.rows(late)));
  },
);

test('a stage that is reset asks again', async ({ engine }) => {
  const { run, attempt } = await drafted(engine, (await open(engine)).exported('posts'));
  await engine.rows(`select millrace.reset($1, 'review')`, [run]);
  await sweep(engine);
  const asked = await engine.rows('select attempt_id from public.millrace_decisions where closed_at is null');
  expect(asked).toHaveLength(1);
  expect(asked).not.toMatchObject([{ attempt_id: attempt }]);
});
