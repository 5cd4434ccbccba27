// Who may use the operators' functions, and what others learn from them.
import { expect } from 'vitest';
import { verbs } from '../../../operators/verbs.ts';
import { journal, Operator, signIn, withSecretKey } from '../../support/engine/operators.ts';
import { chain, type Engine, findingsTest as test } from '../../support/engine.ts';
import { failed, Worker } from '../../support/worker.ts';

const reading = [
  ['overview', {}],
  ['pipeline', { pipeline: 'flow' }],
  ['series', { pipeline: 'flow' }],
  ['runs', {}],
  ['run', { run: 1 }],
  ['attempt', { attempt: 1 }],
  ['dead_letters', {}],
  ['alerts', {}],
  ['journal', {}],
  ['search', { text: '1' }],
] as const;

/** `flow`, with one run that has failed for good; resolves to it and its attempt. */
async function withDeadLetter(engine: Engine, name = 'flow'): Promise<{ run: number; attempt: number }> {
  const stage = `${name}_only`;
  await engine.pipeline([{ name: stage }], {}, name);
  await engine.queued(stage);
  const worker = await Worker.of(engine, stage, name);
  const item = await worker.takeOne();
  const error = { code: 'gone', message: 'it is gone', detail: 'a secret', permanent: true };
  await worker.report(failed(item, error));
  return { run: item.run, attempt: item.attempt };
}

test('a caller who is no operator learns nothing of any function, not even a name', async ({ engine }) => {
  const { run } = await withDeadLetter(engine);
  const stranger = await signIn(engine, 'user_stranger');
  const refusal = { code: '42501', message: 'you are no operator here', hint: expect.not.stringContaining('flow') };
  for (const [name, query] of reading) {
    for (const asked of [query, {}, null, [], { pipeline: 'none' }, { [name]: 7 }]) {
      expect(await stranger.refusal(name, asked)).toEqual(refusal);
    }
  }
  for (const asked of [{ verb: 'retry', run }, {}, null, { verb: 'nothing' }]) {
    expect(await stranger.refusal('act', asked)).toEqual(refusal);
  }
});

test('anon can call none of the operators’ functions', async ({ engine }) => {
  const anon = new Operator(engine, await engine.database.connect('anon'));
  for (const [name, query] of [...reading, ['act', { verb: 'pause' }] as const]) {
    expect(await anon.refusal(name, query)).toMatchObject({
      code: '42501',
      message: `permission denied for function millrace_${name}`,
    });
  }
});

test('a token without a sub, with an empty one, or with another’s claims in the wrong place is nobody', async ({
  engine,
}) => {
  await signIn(engine, 'ada', {});
  for (const claims of [{}, { sub: '' }, { user_metadata: { sub: 'ada' }, app_metadata: { sub: 'ada' } }]) {
    const nobody = new Operator(engine, await engine.database.connect('authenticated', claims));
    expect(await nobody.refusal('overview')).toMatchObject({ code: '42501' });
  }
});

test('a viewer reads everything and acts on nothing', async ({ engine }) => {
  const { run, attempt } = await withDeadLetter(engine);
  const viewer = await signIn(engine, 'user_2x', { role: 'viewer' });
  for (const [name, query] of reading) {
    const numbered = name === 'run' ? { run } : name === 'attempt' ? { attempt } : query;
    expect(await viewer.ask(name, numbered)).toBeTypeOf('object');
  }
  for (const verb of ['retry', 'cancel', 'pause', 'throttle', 'preview', 'begin', 'status', 'silence', 'grant']) {
    expect(await viewer.refused(verb, { run })).toMatchObject({
      code: '42501',
      message: 'you may read here, but not act',
    });
  }
  expect(await journal(engine)).toEqual([]);
});

test('an operator sees and touches their own pipelines, and others are answered as if there were none', async ({
  engine,
}) => {
  const mine = await withDeadLetter(engine, 'mine');
  const other = await withDeadLetter(engine, 'other');
  const operator = await signIn(engine, 'ben', { pipelines: ['mine'] });
  const overview = await operator.ask('overview');
  expect(JSON.stringify(overview)).not.toContain('other');
  for (const name of ['runs', 'dead_letters', 'alerts', 'journal']) {
    expect(JSON.stringify(await operator.ask(name))).not.toContain('other');
  }
  const named = async (pipeline: string, run: number, attempt: number) => [
    await operator.refusal('pipeline', { pipeline }),
    await operator.refusal('runs', { pipeline }),
    await operator.refusal('run', { run }),
    await operator.refusal('attempt', { attempt }),
    await operator.refused('retry', { run }),
    await operator.refused('retry', { pipeline, entity: '1' }),
    await operator.refused('pause', { pipeline }),
    await operator.refused('silence', { pipeline, minutes: 5, reason: 'x' }),
    await operator.refused('preview', { do: { verb: 'retry' }, filter: { pipeline } }),
  ];
  const blurred = (answers: unknown) =>
    JSON.stringify(answers)
      .replaceAll(/\bother\b|\bnosuch\b/g, 'P')
      .replaceAll(/\d+/g, 'n');
  const foreign = await named('other', other.run, other.attempt);
  expect(blurred(foreign)).toBe(blurred(await named('nosuch', 987654, 987654)));
  for (const { code } of foreign) expect(code).toBe('MR003');
  expect(await operator.ask('runs', { runs: [other.run] })).toMatchObject({ runs: [] });
  expect(await operator.ask('search', { text: `${other.run}` })).toMatchObject({ runs: [] });
  expect(await operator.act('retry', { run: mine.run })).toMatchObject({ run: mine.run, status: 'running' });
  // A stage's names are told for their own pipeline alone.
  expect(await operator.refused('pause', { pipeline: 'mine', stage: 'none' })).toMatchObject({
    code: 'MR003',
    hint: 'Its stages: mine_only.',
  });
});

test('a right that is taken away counts at the next call, and waits for an action that is under way', async ({
  engine,
}) => {
  await withDeadLetter(engine);
  const operator = await signIn(engine, 'cleo', {});
  await operator.client.query('begin');
  await operator.act('pause', { pipeline: 'flow' });
  const revoking = await engine.database.connect();
  await revoking.query(`set lock_timeout = '100ms'`);
  const revoke = `delete from millrace.operators where subject = 'cleo'`;
  expect(await engine.refusal(revoke, [], revoking)).toMatchObject({ code: '55P03' });
  await operator.client.query('commit');
  await revoking.query(revoke);
  expect(await operator.refused('unpause', { pipeline: 'flow' })).toMatchObject({ code: '42501' });
  expect(await operator.refusal('overview')).toMatchObject({ code: '42501' });
});

test('a setting asks a second factor of whoever acts, and not of whoever reads', async ({ engine }) => {
  await withDeadLetter(engine);
  await engine.sql.query(`update millrace.settings set value = 'true' where name = 'operators_need_aal2'`);
  const plain = await signIn(engine, 'dan', {}, { aal: 'aal1' });
  const strong = await signIn(engine, 'eve', {}, { aal: 'aal2' });
  expect(await plain.ask('overview')).toMatchObject({ you: { role: 'operator' } });
  expect(await plain.refused('pause', { pipeline: 'flow' })).toMatchObject({
    code: '42501',
    message: expect.stringContaining('second factor'),
  });
  expect(await strong.act('pause', { pipeline: 'flow' })).toMatchObject({ verb: 'pause' });
});

test('a secret key acts on all and says for whom, and its session cannot pass for another', async ({ engine }) => {
  const { run } = await withDeadLetter(engine);
  const program = await withSecretKey(engine);
  expect(await program.refused('retry', { run })).toMatchObject({
    code: 'MR002',
    message: 'operator is missing, but a secret key must say for whom it acts',
  });
  await program.client.query(`select set_config('request.headers', '{"apikey": "sb_secret_1"}', false)`);
  await program.act('retry', { run, operator: 'runbook' });
  expect(await journal(engine)).toMatchObject([{ verb: 'retry', subject: 'runbook', key: 'secret' }]);
  expect(JSON.stringify(await journal(engine))).not.toContain('sb_secret');
});

test('results and the details of errors are for who sees payloads', async ({ engine }) => {
  const { run, attempt } = await withDeadLetter(engine);
  const blind = await signIn(engine, 'fay', { role: 'viewer' });
  const seeing = await signIn(engine, 'gus', { role: 'viewer', payloads: true });
  for (const [name, query] of [
    ['runs', {}],
    ['run', { run }],
    ['attempt', { attempt }],
    ['dead_letters', {}],
  ] as const) {
    expect(JSON.stringify(await blind.ask(name, query))).not.toContain('a secret');
  }
  expect(await seeing.ask('attempt', { attempt })).toMatchObject({ error: { code: 'gone', detail: 'a secret' } });
});

test('the journal notes who becomes an operator, or is none any more', async ({ engine }) => {
  await engine.sql.query(
    `insert into millrace.operators (subject, role, pipelines) values ('kim', 'viewer', '{flow}')`,
  );
  await engine.sql.query(`update millrace.operators set note = '' where subject = 'kim'`);
  await engine.sql.query(`delete from millrace.operators where subject = 'kim'`);
  expect(await engine.rows('select verb, key, outcome from millrace.journal order by id')).toMatchObject([
    { verb: 'grant', key: 'sql', outcome: { subject: 'kim', pipelines: ['flow'] } },
    { verb: 'revoke', key: 'sql', outcome: { subject: 'kim' } },
  ]);
});

test('an operator who silences an alert that is missing or not theirs silences none and learns no name', async ({
  engine,
}) => {
  await withDeadLetter(engine, 'mine');
  await withDeadLetter(engine, 'other');
  const alert = await engine.value<number>(`
    insert into millrace.alerts (
      rule_id, pipeline_id, stage_id, rule, kind, pipeline, value, above, span, since, raised_at)
    select 1, p.id, 0, 'dead', 'dead', p.name, 11, 10, interval '1 hour', millrace.now(), millrace.now()
    from millrace.pipelines p where p.name = 'other'
    returning id::int`);
  const ada = await signIn(engine, 'ada');
  await engine.sql.query(`insert into millrace.operators (subject, role) values ('ada', 'operator')`);
  const ben = await signIn(engine, 'ben', { pipelines: ['mine'] });
  const rest = { minutes: 5, reason: 'it is known' };
  const refusal = (number: number) => ({
    code: 'MR003',
    message: `there is no alert ${number} that you see`,
    hint: 'Open ones: millrace_alerts({"open": true}).',
  });
  expect(await ada.refused('silence', { alert: 999, ...rest })).toEqual(refusal(999));
  expect(await ben.refused('silence', { alert, ...rest })).toEqual(refusal(alert));
  expect(await engine.rows('select * from millrace.silences')).toEqual([]);
  await ada.act('silence', { alert, ...rest });
  expect(await engine.rows('select pipeline, kind from millrace.silences')).toEqual([
    { pipeline: 'other', kind: 'dead' },
  ]);
});

test('a silence is refused without a reason, of a stage or a kind that there is not, and of all by who sees some', async ({
  engine,
}) => {
  await withDeadLetter(engine, 'mine');
  const ada = await signIn(engine, 'ada', {});
  const ben = await signIn(engine, 'ben', { pipelines: ['mine'] });
  const rest = { minutes: 5, reason: 'it is known' };
  const missing = { code: 'MR002', message: 'pipeline is missing, but silence needs it' };
  expect(await ada.refused('silence', { pipeline: 'mine', minutes: 5, reason: ' ' })).toMatchObject({ code: 'MR002' });
  expect(await ada.refused('silence', { stage: 'mine_only', ...rest })).toMatchObject(missing);
  expect(await ben.refused('silence', rest)).toMatchObject(missing);
  expect(await ada.refused('silence', { pipeline: 'mine', stage: 'none', ...rest })).toMatchObject({ code: 'MR003' });
  expect(await ada.refused('silence', { pipeline: 'mine', kind: 'none', ...rest })).toMatchObject({
    code: 'MR003',
    message: 'there is no rule of kind "none"',
  });
  expect(await engine.rows('select * from millrace.silences')).toEqual([]);
});

test('a whole number may be written with a decimal point', async ({ engine }) => {
  const { run } = await withDeadLetter(engine);
  const ada = await signIn(engine, 'ada', {});
  const ask = async (name: string, query: string) =>
    (await ada.client.query(`select public.millrace_${name}($1) as answer`, [query])).rows[0].answer;
  expect(await ask('run', `{"run": ${run}.0}`)).toMatchObject({ run });
  expect(await ask('runs', `{"runs": [${run}.0, ${run}1], "limit": 5.0}`)).toMatchObject({ runs: [{ run }] });
  expect(await ask('act', `{"verb": "retry", "run": ${run}.0}`)).toMatchObject({ run, status: 'running' });
  expect(await ask('journal', `{"run": ${run}.0}`)).toMatchObject({ entries: [{ verb: 'retry' }] });
  expect(await engine.refusal('select public.millrace_run($1)', [`{"run": ${run}.5}`], ada.client)).toMatchObject({
    code: 'MR002',
    message: `p_query.run is ${run}.5, but must be a whole number from 1 to 9007199254740991`,
  });
});

test('a stage is claimed under places in flight that are written with a decimal point', async ({ engine }) => {
  await engine.pipeline(chain(['only']));
  await engine.queued('only', 3);
  const ada = await signIn(engine, 'ada', {});
  await ada.client.query(`select public.millrace_act('{"verb": "throttle", "pipeline": "flow", "stage": "only",
    "limits": {"max_in_flight": 2.0}, "minutes": 5, "reason": "less at once"}')`);
  const worker = await Worker.of(engine, 'only');
  expect(await worker.take(3)).toHaveLength(2);
});

test('commands, assistants and the page name the verbs that the engine has, and each has a function', async ({
  engine,
}) => {
  const rows = await engine.rows<{ verb: string; about: string; needs: string[]; destroys: boolean }>(
    'select verb, about, needs, destroys from millrace.verbs where is_open',
  );
  const told = Object.entries(verbs).map(([verb, { says: _, ...row }]) => ({ verb, ...row }));
  const byVerb = (one: { verb: string }, other: { verb: string }) => one.verb.localeCompare(other.verb);
  expect(rows.sort(byVerb)).toEqual(told.sort(byVerb));
  const named = await engine.rows<{ call: string; found: boolean }>(`
    select c.call, to_regproc(c.call) is not null as found
    from millrace.verbs v
    cross join lateral (values (v.does), (v.acts)) a(text)
    cross join lateral (select split_part(a.text, '(', 1)) c(call)
    where a.text is not null`);
  expect(named.filter(({ found }) => !found)).toEqual([]);
  expect(named.length).toBeGreaterThan(rows.length);
});
