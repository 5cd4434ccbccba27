// The origin of results: the attempts, models, prompts, releases and people that made them.
import { expect } from 'vitest';
import type { Run, Touched } from '../../../operators/answers.ts';
import { sayOrigin, stageOf, upstreamOf } from '../../../operators/origin.ts';
import { collectChildren } from '../../support/engine/children.ts';
import { defineSplit, insertParts, spawnParts, verb } from '../../support/engine/operations.ts';
import { type Operator, signIn } from '../../support/engine/operators.ts';
import { chain, type Engine, type Row, test } from '../../support/engine.ts';
import { type Claimed, completed, failed, runStage, Worker } from '../../support/worker.ts';

const viewer = (engine: Engine) => signIn(engine, 'ann', { role: 'viewer' });

const prompted = (version: string, cost_usd = 0.2, more: Row = {}) => ({
  usage: { model: 'gpt-6-luna', prompt: `score-1@${version}`, cost_usd, ...more },
});

/** The origin of the results of a row's newest run, by stage. */
async function origins(operator: Operator, entity: string | undefined) {
  const { stages } = await runOf(operator, entity);
  return Object.fromEntries(stages.map(({ stage, made_by }) => [stage, made_by]));
}

async function runOf(operator: Operator, entity: string | undefined): Promise<Run> {
  const run = Number(await operator.engine.value(`select millrace.run_of('flow', $1)`, [entity]));
  return operator.ask<Run>('run', { run });
}

/** The sentences about a stage's result and all that went into it, by stage. */
async function told(operator: Operator, entity: string | undefined, named: string) {
  const run = await runOf(operator, entity);
  const stages = upstreamOf(run, stageOf(run, named) as Run['stages'][number]);
  return Object.fromEntries(stages.map((stage) => [stage.stage, sayOrigin(run, stage)]));
}

/** Ends what is queued at a stage, each item as `end` says. */
async function work(engine: Engine, stage: string, end: (item: Claimed, place: number) => Row) {
  const worker = await Worker.of(engine, stage);
  const items = await worker.take();
  expect(await worker.report(...items.map(end))).toEqual(items.map(() => 'accepted'));
  return items;
}

test('a result names the attempt that made it after all tries, with its model, prompt, release and cost', async ({
  engine,
}) => {
  await engine.pipeline(chain(['read', 'score', 'mail']));
  await engine.sql.query(`update millrace.stages set seen = jsonb_build_object('releases', jsonb_build_array(
    jsonb_build_object('release', 'later', 'at', millrace.now() + interval '1 day'),
    jsonb_build_object('release', 'r2', 'at', millrace.now()),
    jsonb_build_object('release', 'r1', 'at', millrace.now() - interval '1 day'))) where name = 'read'`);
  const [id] = await engine.queued('read');
  const [read] = await work(engine, 'read', completed);
  await work(engine, 'score', (item) => ({ ...failed(item), ...prompted('aa', 0.1) }));
  const operator = await viewer(engine);
  expect(await origins(operator, id)).toMatchObject({ score: null });
  await engine.advance('1 hour');
  const [score] = await work(engine, 'score', (item) => ({ ...completed(item), ...prompted('bb') }));
  const run = read?.run;
  expect(await origins(operator, id)).toEqual({
    read: { run, attempt: read?.attempt, release: 'r2' },
    score: { run, attempt: score?.attempt, model: 'gpt-6-luna', prompt: 'score-1@bb', cost_usd: 0.2 },
    mail: null,
  });
  expect(await told(operator, id, 'score_result')).toEqual({
    read: `code, release r2, attempt ${read?.attempt}`,
    score: `model gpt-6-luna, prompt score-1@bb, $0.2, attempt ${score?.attempt}`,
  });
  expect(await told(operator, id, 'mail')).toMatchObject({ read: expect.any(String), mail: '' });
  await verb(engine, 'reset', id, 'score');
  expect(await origins(operator, id)).toMatchObject({ score: null });
  const [again] = await work(engine, 'score', (item) => ({
    ...completed(item),
    ...prompted('bb', 0, { cached: true }),
  }));
  expect(await origins(operator, id)).toMatchObject({ score: { attempt: again?.attempt, cached: true, cost_usd: 0 } });
  expect((await told(operator, id, 'score')).score).toMatch(/^a former answer of gpt-6-luna, prompt score-1@bb, \$0, /);
});

test('a result that a person edited or completed is named as made by hand, until the stage starts over', async ({
  engine,
}) => {
  await engine.pipeline(chain(['read', 'score', 'mail']));
  const [id] = await engine.queued('read');
  const [read] = await work(engine, 'read', completed);
  const ben = await signIn(engine, 'ben', { payloads: true });
  const { run, attempt } = read as Claimed;
  await ben.act('edit', { run, stage: 'read', attempt, reason: 'a typo', result: { name: 'Ada' } });
  await verb(engine, 'skip', id, 'score');
  expect(await origins(ben, id)).toMatchObject({ read: { service: 'by_hand', run }, score: null });
  expect(await told(ben, id, 'score')).toEqual({
    read: expect.stringMatching(/^a person, by hand, edit by ben \(a typo\), attempt \d+$/),
    score: '',
  });
  await verb(engine, 'reset', id, 'read');
  await work(engine, 'read', completed);
  expect(await origins(ben, id)).toEqual({
    read: { run, attempt: expect.any(Number) },
    score: null,
    mail: null,
  });
});

test('a result that a run took over from earlier runs names the attempt that made it', async ({ engine }) => {
  await engine.pipeline(chain(['read', 'score']));
  const [id] = await engine.queued('read');
  const [read] = await work(engine, 'read', (item) => ({ ...completed(item), ...prompted('aa') }));
  await runStage(engine, 'score');
  for (const wait of ['1 minute', '80 days']) {
    await engine.advance(wait);
    await engine.sql.query(`update public.items set score_status = 'queued' where id = $1`, [id]);
    await runStage(engine, 'score');
  }
  const operator = await viewer(engine);
  const made = { attempt: read?.attempt, run: read?.run, ...prompted('aa').usage };
  expect((await origins(operator, id)).read).toEqual(made);
  expect((await told(operator, id, 'score')).read).toMatch(` of run ${read?.run}`);
  await engine.advance('20 days');
  await engine.sql.query('select millrace.prune()');
  const { read: left } = await origins(operator, id);
  expect(left).toEqual({ run: expect.any(Number), attempt: expect.any(Number), taken_from: expect.any(Number) });
  expect((await told(operator, id, 'score')).read).toMatch(/^an earlier run, which is deleted, attempt \d+$/);
});

test('the result of a map is made by its children', async ({ engine }) => {
  await defineSplit(engine);
  const [id] = await engine.queued('split');
  const [part] = await insertParts(engine, 1);
  await spawnParts(engine, [part as string]);
  for (const stage of ['scan', 'read']) await runStage(engine, stage, 'parts');
  await collectChildren(engine);
  expect(await origins(await viewer(engine), id)).toMatchObject({ split: { service: 'children' }, join: null });
});

test('the results that a change touches are counted by model, prompt and release, with the cost of the stages from there on', async ({
  engine,
}) => {
  await engine.pipeline(chain(['read', 'score', 'mail', 'send']));
  const [id] = await engine.queued('read', 6);
  const paid = (usd: number) => (item: Claimed) => ({ ...completed(item), usage: { cost_usd: usd } });
  await work(engine, 'read', paid(5));
  const scored = await work(engine, 'score', (item, place) => ({
    ...completed(item),
    ...prompted(place < 2 ? 'aa' : 'bb'),
  }));
  await work(engine, 'mail', paid(0.01));
  await work(engine, 'send', (item, place) => ({
    ...(place === 5 ? failed(item, { code: 'gone', permanent: true }) : completed(item)),
    usage: { cost_usd: 0.001 },
  }));
  // A row that has gone through a later run counts once, by the attempt that made its result.
  await engine.sql.query(`update public.items set mail_status = 'queued' where id = $1`, [id]);
  const operator = await viewer(engine);
  const touched = async (stage: string) => operator.ask<Touched>('touched', { pipeline: 'flow', stage });
  const tell = ({ made }: Touched) => made.map((of) => [of.prompt, of.rows, Math.round(of.cost_usd * 1000)]);
  expect(tell(await touched('score'))).toEqual([
    ['score-1@bb', 4, 844],
    ['score-1@aa', 2, 411],
  ]);
  await work(engine, 'mail', paid(0.02));
  await work(engine, 'send', paid(0.002));
  const { looked, whole, made } = await touched('score');
  expect({ looked, whole }).toEqual({ looked: 7, whole: true });
  expect(tell({ looked, whole, made })).toEqual([
    ['score-1@bb', 4, 844],
    ['score-1@aa', 2, 211 + 222],
  ]);
  const runs = await engine.rows('select id::int from millrace.runs where id = any ($1)', [made[0]?.run_ids]);
  expect(runs.map((run) => run.id).sort()).toEqual(scored.slice(2).map(({ run }) => run));
  expect(tell(await touched('send')).map(([, rows, usd]) => [rows, usd])).toEqual([[5, 4 + 2]]);
  await expect(operator.ask('touched', { pipeline: 'flow' })).rejects.toThrow('there is no stage null');
});
