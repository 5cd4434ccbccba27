import { describe, expect } from 'vitest';
import { compiled } from '../../support/definitions.ts';
import { addChannel, addRule, deliver, minutes, onlyRule, open, take, told } from '../../support/engine/alerts.ts';
import { type Engine, type Row, findingsTest as test } from '../../support/engine.ts';
import { openTransaction } from '../../support/sessions.ts';
import { type Claimed, completed, failed, runStage, Worker } from '../../support/worker.ts';

const backlog = { name: 'backlog', kind: 'backlog', stage: '*', above: 2, hold: '2 minutes', recover: '2 minutes' };

/** Fails so many items of the stage for good, and completes so many. */
async function ends(engine: Engine, failing: number, completing: number, code = 'no_content'): Promise<void> {
  await engine.queued('only', failing + completing);
  const worker = await Worker.of(engine, 'only');
  const items = await worker.take(failing + completing);
  await worker.report(
    ...items.map((item, place) =>
      place < failing ? failed(item, { permanent: true, code, message: 'it is blank' }) : completed(item),
    ),
  );
  await worker.leave();
}

test('an alert is raised once it has been above its bound for long enough, once, and resolved the same way', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only' }]);
  await onlyRule(engine, backlog);
  await engine.queued('only', 2);
  await minutes(engine, 4);
  expect(await open(engine), 'not above').toEqual([]);
  await engine.queued('only', 1);
  await minutes(engine, 2);
  expect(await open(engine), 'not for long enough').toEqual([]);
  await minutes(engine, 1);
  expect(await open(engine)).toEqual(['backlog only flow']);
  await minutes(engine, 10);
  expect(await told(engine)).toMatchObject([
    { message: '3 runs are ready at only of flow, above 2, for 2 minutes', resolved_at: null },
  ]);
  await runStage(engine, 'only');
  await minutes(engine, 2);
  expect(await open(engine), 'not over for long enough').toEqual(['backlog only flow']);
  await minutes(engine, 1);
  expect(await open(engine)).toEqual([]);
});

test('a moment below the bound begins the time anew before, and the time to recover after', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await onlyRule(engine, backlog);
  const ids = await engine.queued('only', 3);
  await minutes(engine, 2);
  await engine.sql.query('delete from public.items where id = $1', [ids[0]]);
  await minutes(engine, 1);
  await engine.queued('only', 1);
  await minutes(engine, 2);
  expect(await open(engine)).toEqual([]);
  await minutes(engine, 1);
  expect(await open(engine)).toEqual(['backlog only flow']);
});

test('rules are judged once in a minute, however often the sweep runs', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await onlyRule(engine, { ...backlog, hold: '0' });
  await minutes(engine, 1);
  await engine.queued('only', 3);
  for (let sweeps = 0; sweeps < 5; sweeps++) {
    await engine.advance('10 seconds');
    await engine.sql.query('select millrace.sweep()');
  }
  expect(await open(engine)).toEqual([]);
  await engine.advance('10 seconds');
  await engine.sql.query('select millrace.sweep()');
  expect(await open(engine)).toEqual(['backlog only flow']);
});

test('the rules that every project needs are there', async ({ engine }) => {
  expect(
    await engine.rows(
      `select name, kind, stage, above, extract(epoch from hold)::int as hold, extract(epoch from span)::int as span
       from millrace.alert_rules order by id`,
    ),
  ).toMatchObject([
    { name: 'sla', kind: 'run_sla', hold: 900 },
    { name: 'errors', kind: 'error_share', stage: '*', above: '0.1', span: 600 },
    { name: 'backlog', kind: 'backlog', stage: '*', above: '1000', hold: 900 },
    { name: 'dead', kind: 'dead', stage: null, above: '10', span: 3600 },
    { name: 'late', kind: 'late', stage: '*' },
    { name: 'engine', kind: 'engine' },
    { name: 'refused', kind: 'refused', stage: '*', above: '600', hold: 0 },
    { name: 'unattended', kind: 'unattended', stage: '*', above: '45', hold: 0 },
  ]);
});

describe('what rules look at', () => {
  test('the share of failures at a stage, once enough have ended', async ({ engine }) => {
    await engine.pipeline([{ name: 'only' }]);
    await onlyRule(engine, { name: 'errors', kind: 'error_share', stage: '*', above: 0.1, least: 10 });
    await ends(engine, 3, 6);
    await minutes(engine, 1);
    expect(await open(engine), 'nine are too few').toEqual([]);
    await ends(engine, 0, 1);
    await minutes(engine, 1);
    expect(await told(engine)).toMatchObject([
      {
        message:
          '30 % of what ended at only of flow in the last 10 minutes failed, most often as no_content, above 10 %',
      },
    ]);
    await minutes(engine, 12);
    expect(await open(engine), 'nothing has ended for half of the span').toEqual([]);
  });

  test('a share of which the newest minute is below the bound: what is mended raises no alert, and one that is open says since when', async ({
    engine,
  }) => {
    await engine.pipeline([{ name: 'only' }]);
    await onlyRule(engine, { name: 'errors', kind: 'error_share', stage: '*', above: 0.1, least: 10 });
    await ends(engine, 8, 2);
    await minutes(engine, 1);
    expect(await open(engine)).toEqual(['errors only flow']);
    await ends(engine, 0, 2);
    await minutes(engine, 1);
    const over = () =>
      engine.rows<{ over: boolean }>('select below_since is not null as over from millrace.rule_states');
    expect(await over(), 'mended within two minutes').toEqual([{ over: true }]);
    expect(await open(engine), 'it recovers for five minutes').toEqual(['errors only flow']);
    await ends(engine, 2, 0);
    await minutes(engine, 1);
    expect(await over(), 'it fails again').toEqual([{ over: false }]);

    await engine.sql.query('delete from millrace.alerts; delete from millrace.rule_states');
    await ends(engine, 0, 4);
    await minutes(engine, 1);
    expect(await open(engine), 'mended before it was judged').toEqual([]);
    await minutes(engine, 3);
    expect(await open(engine), 'the end of the traffic brings no mended fault back').toEqual([]);
  });

  test('the code that is most frequent of late, not the one that was so for most of the span', async ({ engine }) => {
    await engine.pipeline([{ name: 'only' }]);
    await onlyRule(engine, { name: 'errors', kind: 'error_share', stage: '*', above: 0.1, least: 3 });
    const fail = async (code: string, count: number) => {
      await engine.queued('only', count);
      const worker = await Worker.of(engine, 'only');
      const items = await worker.take(count);
      await worker.report(...items.map((item) => failed(item, { permanent: true, code, message: 'no' })));
      await worker.leave();
      await minutes(engine, 1);
    };
    await fail('misconfigured', 9);
    await fail('rate_limited', 3);
    expect(
      await engine.rows(
        'select a.detail, t.detail as now from millrace.alerts a join millrace.rule_states t using (rule_id)',
      ),
    ).toEqual([{ detail: 'misconfigured', now: 'rate_limited' }]);
    expect(await engine.value('select millrace.alert_json(a) from millrace.alerts a')).toMatchObject({
      cause: 'rate_limited',
      detail: 'misconfigured',
      detail_now: 'rate_limited',
    });
    await minutes(engine, 3);
    expect(await engine.value('select detail from millrace.rule_states'), 'the newest that failed').toBe(
      'rate_limited',
    );
  });

  test('the share of failed runs of a pipeline, with what its stages failed by', async ({ engine }) => {
    await engine.pipeline([{ name: 'only' }]);
    await onlyRule(engine, { name: 'errors', kind: 'error_share', pipeline: 'flow', above: 0.1 });
    await ends(engine, 3, 7);
    await minutes(engine, 1);
    expect(await told(engine)).toMatchObject([
      { message: expect.stringMatching(/^30 % of what ended .*failed, most often as no_content, above 10 %$/) },
    ]);
  });

  test('an error code that holds lines, controls or another direction of writing is told in one plain line', async ({
    engine,
  }) => {
    await engine.pipeline([{ name: 'only' }]);
    await onlyRule(engine, { name: 'dead', kind: 'dead', above: 0, span: '1 hour' });
    await engine.queued('only');
    const worker = await Worker.of(engine, 'only');
    const code = `<b>a\u202e\u0007\n\u2066b${'c'.repeat(190)}`;
    await worker.report(failed(await worker.takeOne(), { permanent: true, code, message: 'x' }));
    await minutes(engine, 1);
    const [{ message } = { message: '' }] = await told(engine);
    expect(message).toMatch(/^1 run of flow failed in the last hour, most often as <b>a bc+…, above 0$/);
    expect(message.length).toBeLessThan(150);
  });

  test('runs that failed in the last hour', async ({ engine }) => {
    await engine.pipeline([{ name: 'only' }]);
    await onlyRule(engine, { name: 'dead', kind: 'dead', above: 2, span: '1 hour' });
    await ends(engine, 2, 0);
    await minutes(engine, 1);
    expect(await open(engine)).toEqual([]);
    await ends(engine, 1, 0);
    await minutes(engine, 1);
    expect(await told(engine)).toMatchObject([
      { message: '3 runs of flow failed in the last hour, most often as no_content, above 2' },
    ]);
    const over = () => engine.value('select below_since is null from millrace.rule_states');
    expect(await over()).toBe(true);
    const retry = (most: number) =>
      engine.sql.query(
        `select millrace.retry(r.id) from (select id from millrace.runs where status = 'failed' order by id limit ${most}) r`,
      );
    await retry(2);
    await minutes(engine, 1);
    expect(await over(), 'one of them is dead still').toBe(true);
    await retry(1);
    await minutes(engine, 1);
    expect(await over(), 'all of them are retried').toBe(false);
  });

  test('runs that failed name the code that ended them, not a more frequent one of tries that were repeated', async ({
    engine,
  }) => {
    await engine.pipeline([{ name: 'only' }]);
    await onlyRule(engine, { name: 'dead', kind: 'dead', above: 0, span: '1 hour' });
    await engine.queued('only', 3);
    const worker = await Worker.of(engine, 'only');
    for (const code of ['rate_limited', 'rate_limited', 'not_found']) {
      const permanent = code === 'not_found';
      await worker.report(failed(await worker.takeOne(), { permanent, code, message: 'x' }));
    }
    await minutes(engine, 1);
    expect(await told(engine)).toMatchObject([
      { message: '1 run of flow failed in the last hour, most often as not_found, above 0' },
    ]);
  });

  test('a share whose failures come back by another code while the alert recovers is another alert', async ({
    engine,
  }) => {
    await engine.pipeline([{ name: 'only' }]);
    await addChannel(engine);
    await onlyRule(engine, { name: 'errors', kind: 'error_share', stage: '*', above: 0.1, least: 2 });
    await ends(engine, 8, 2);
    await minutes(engine, 1);
    expect(await deliver(engine)).toEqual(['raised errors']);
    const codes = () => engine.rows('select detail from millrace.alerts where resolved_at is null');
    await ends(engine, 0, 9);
    await minutes(engine, 1);
    await ends(engine, 9, 0);
    await minutes(engine, 1);
    expect(await codes(), 'the same code').toEqual([{ detail: 'no_content' }]);
    expect(await deliver(engine)).toEqual([]);
    await ends(engine, 0, 9);
    await minutes(engine, 1);
    await ends(engine, 9, 0, 'no_credit');
    await minutes(engine, 1);
    expect(await codes()).toEqual([{ detail: 'no_credit' }]);
    expect((await deliver(engine)).sort()).toEqual(['raised errors', 'resolved errors']);
  });

  test('codes that take turns while an alert recovers are one alert each in a span, however often they come back', async ({
    engine,
  }) => {
    await engine.pipeline([{ name: 'only' }]);
    await addChannel(engine);
    await onlyRule(engine, { name: 'errors', kind: 'error_share', stage: '*', above: 0.1, least: 2 });
    const told: string[] = [];
    for (let turn = 0; turn < 8; turn++) {
      await ends(engine, turn % 2 ? 0 : 4, 2, turn % 4 ? 'blank' : 'gone');
      await minutes(engine, 1);
      // However many alerts other rules raise meanwhile.
      await engine.sql.query(`insert into millrace.alerts (rule_id, pipeline_id, stage_id, rule, kind, value, above,
          span, since, raised_at, resolved_at, settled)
        select -1, 0, 0, 'other', 'dead', 1, 0, '1 hour', millrace.now(), millrace.now(), millrace.now(), true
        from generate_series(1, 100)`);
      told.push(...(await deliver(engine)));
    }
    expect(told).toEqual(['raised errors', 'raised errors', 'resolved errors']);
    expect(await open(engine)).toEqual(['errors only flow']);
  });

  test('another code is told at once, also by a rule that waits for long, and beside failures without a code', async ({
    engine,
  }) => {
    await engine.pipeline([{ name: 'only' }]);
    await addChannel(engine);
    const rule = { name: 'errors', kind: 'error_share', stage: '*', above: 0.1, least: 2, hold: '3 minutes' };
    await onlyRule(engine, rule);
    for (const code of ['gone', 'gone', 'gone', 'gone']) {
      await ends(engine, 4, 0, code);
      await minutes(engine, 1);
    }
    expect(await deliver(engine)).toEqual(['raised errors']);
    await engine.sql.query('update millrace.alerts set detail = null');
    await ends(engine, 0, 3);
    await minutes(engine, 1);
    await ends(engine, 4, 0, 'blank');
    await minutes(engine, 1);
    expect(await open(engine)).toEqual(['errors only flow']);
    expect((await deliver(engine)).sort()).toEqual(['raised errors', 'resolved errors']);
  });

  test('rules look at what is spent', async ({ engine }) => {
    await engine.pipeline([{ name: 'only' }]);
    await onlyRule(engine, { name: 'budget', kind: 'spend', pipeline: 'flow', above: 1, span: '1 day' });
    await engine.queued('only', 3);
    const worker = await Worker.of(engine, 'only');
    const usage = { model: 'm', input_tokens: 1, output_tokens: 1, cost_usd: 0.5 };
    const spend = async (items: Claimed[]) => worker.report(...items.map((item) => ({ ...completed(item), usage })));
    await spend(await worker.take(2));
    await minutes(engine, 1);
    expect(await open(engine)).toEqual([]);
    await spend(await worker.take(1));
    await minutes(engine, 1);
    expect(await told(engine)).toMatchObject([
      { message: 'flow spent 1.50 US dollars in the last day, above 1.00', playbook: 'docs/playbooks/budget.md' },
    ]);
  });

  test('rules look at the pipeline’s own bounds, end to end, also while no run ends', async ({ engine }) => {
    const definition = await engine.pipeline([{ name: 'only', lease_seconds: 3600 }]);
    await engine.define({ ...definition, sla: { median_seconds: 1200, p95_seconds: 7200 } });
    await onlyRule(engine, { name: 'sla', kind: 'run_sla', hold: '15 minutes' });
    await engine.queued('only', 20);
    await engine.advance('20 minutes');
    await minutes(engine, 15);
    expect(await open(engine)).toEqual([]);
    await minutes(engine, 3);
    expect(await told(engine)).toMatchObject([
      {
        rule: 'sla',
        pipeline: 'flow',
        stage: null,
        message: expect.stringMatching(
          /^the median of flow end to end is about .*, above its bound of 20 minutes, for 1\d minutes$/,
        ),
        playbook: 'docs/playbooks/stuck.md',
      },
    ]);
    await runStage(engine, 'only');
  });

  test('a thousand late runs are one alert and one message, which names the first of them', async ({ engine }) => {
    await engine.pipeline([{ name: 'only', sla_seconds: 600 }]);
    await addChannel(engine);
    await onlyRule(engine, { name: 'late', kind: 'late', stage: '*' });
    const [first] = await engine.queued('only', 1);
    await engine.advance('1 minute');
    await engine.queued('only', 999);
    await engine.advance('11 minutes');
    await minutes(engine, 1);
    expect(await engine.value('select count(*)::int from millrace.alerts')).toBe(1);
    const taken = await take(engine);
    expect(taken.map(({ events }) => events.map(({ message }) => message))).toEqual([
      [`1,000 runs are late at only of flow, for longest run ${(await engine.run(first)).id}`],
    ]);
    expect(taken).toHaveLength(1);
  });

  test('the engine, but never what alerts themselves report', async ({ engine }) => {
    await onlyRule(engine, { name: 'engine', kind: 'engine', hold: '5 minutes' });
    await minutes(engine, 6);
    expect((await told(engine))[0]?.message).toMatch(/^the engine is not well: .*project_url/);
  });
});

describe('a rule', () => {
  test('of a pipeline takes the place of the default with its name, also to switch it off', async ({ engine }) => {
    await engine.pipeline([{ name: 'only' }]);
    await onlyRule(engine, { ...backlog, hold: '0' });
    await addRule(engine, { ...backlog, hold: '0', pipeline: 'flow', above: 5 });
    await engine.queued('only', 4);
    await minutes(engine, 1);
    expect(await open(engine)).toEqual([]);
    await engine.queued('only', 2);
    await minutes(engine, 1);
    expect(await open(engine)).toEqual(['backlog only flow']);
    await engine.sql.query(`update millrace.alert_rules set enabled = false where pipeline = 'flow'`);
    await minutes(engine, 1);
    expect(await open(engine)).toEqual([]);
  });

  test('that is deleted resolves its alert', async ({ engine }) => {
    await engine.pipeline([{ name: 'only' }]);
    await onlyRule(engine, { ...backlog, hold: '0' });
    await engine.queued('only', 4);
    await minutes(engine, 1);
    await engine.sql.query('delete from millrace.alert_rules');
    await minutes(engine, 1);
    expect(await engine.rows('select resolved_at from millrace.alerts')).toEqual([{ resolved_at: await engine.now() }]);
  });

  test('that cannot be judged is reported, and ends no other, of its own kind neither', async ({ engine }) => {
    await engine.pipeline([{ name: 'only' }]);
    await onlyRule(engine, { ...backlog, name: 'broken', hold: '0', above: 1e30 });
    for (const name of ['long', 'longer', 'longest']) await addRule(engine, { ...backlog, name, hold: '0' });
    await addRule(engine, { name: 'unwell', kind: 'engine' });
    await engine.queued('only', 4);
    await minutes(engine, 1);
    expect((await open(engine)).sort()).toEqual(['long only flow', 'longer only flow', 'longest only flow', 'unwell']);
    expect(await engine.rows(`select message from millrace.log where code = 'rule_failed'`)).toEqual([
      { message: 'Rule broken of all pipelines cannot be judged: bigint out of range' },
    ]);
  });

  test.each<[string, Row, string, RegExp]>([
    ['a stage that there is not', { pipeline: 'flow', stage: 'gone' }, 'MR003', /gone/],
    ['a pipeline that there is not', { pipeline: 'gone' }, 'MR003', /there is no pipeline gone/],
    ['a stage of no pipeline', { stage: 'only' }, 'MR002', /no pipeline is named/],
    ['no bound', { above: null }, 'MR002', /above is missing/],
    ['a bound below 0', { above: -1 }, 'MR002', /must be 0 or more/],
    ['a bound that is no number', { above: 'NaN' }, 'MR002', /must be 0 or more/],
    ['a share of one', { kind: 'error_share', above: 1 }, 'MR002', /share below 1/],
    ['a bound that its kind knows', { kind: 'late' }, 'MR002', /alone know their own bound/],
    ['a stretch of nothing', { span: '0' }, 'MR002', /span is/],
    ['a least number of 0', { least: 0 }, 'MR002', /least 0, but/],
  ])('about %s is refused, with the remedy', async (_, columns, code, message) => {
    // The table's own fixture, since each() has none.
    const { createEngine } = await import('../../support/engine.ts');
    const engine = await createEngine();
    try {
      await engine.pipeline([{ name: 'only' }]);
      const row = { name: 'new', kind: 'backlog', above: 1, ...columns };
      const names = Object.keys(row);
      const refusal = await engine.refusal(
        `insert into millrace.alert_rules (${names.join(', ')}) values (${names.map((_, at) => `$${at + 1}`).join(', ')})`,
        Object.values(row),
      );
      expect(refusal).toMatchObject({ code, message: expect.stringMatching(message) });
      expect(refusal.hint).toBeTruthy();
    } finally {
      await engine.database.drop();
    }
  });
});

describe('a definition', () => {
  const alerts = { backlog: { kind: 'backlog', stage: '*', above: 7, for_seconds: 60, channels: ['ops'] } };

  test('brings rules along, and takes them back', async ({ engine }) => {
    const definition = await engine.pipeline([{ name: 'only' }]);
    await addRule(engine, { name: 'mine', kind: 'backlog', pipeline: 'flow', above: 3 });
    await engine.define({ ...definition, alerts });
    await engine.define({ ...definition, alerts });
    const rules = () =>
      engine.rows(
        `select name, source, above, extract(epoch from hold)::int as hold from millrace.alert_rules where pipeline = 'flow' order by name`,
      );
    expect(await rules()).toEqual([
      { name: 'backlog', source: 'definition', above: '7', hold: 60 },
      { name: 'mine', source: 'sql', above: '3', hold: 0 },
    ]);
    await engine.define(definition);
    expect(await rules()).toMatchObject([{ name: 'mine' }]);
  });

  test('changes rules while the sweep judges them: nobody waits, and what is open stays open', async ({ engine }) => {
    const definition = await engine.pipeline([{ name: 'only' }]);
    const of = (recoverSeconds: number) => {
      const rule = { kind: 'backlog', stage: 'only', recoverSeconds };
      return compiled({ ...definition, alerts: { first: { ...rule, above: 0 }, second: { ...rule, above: 2 } } });
    };
    await engine.value('select millrace.define($1)', [of(60)]);
    await engine.queued('only', 1);
    await minutes(engine, 1);
    await engine.queued('only', 5);
    const [judging, defining] = [await openTransaction(engine), await openTransaction(engine)];
    const judge = (rule: string) =>
      judging.query(
        `select millrace.evaluate_rule(r, millrace.now()) from millrace.alert_rules r where r.name = $1 and pipeline = 'flow'`,
        [rule],
      );
    await judge('first');
    await defining.query(`set local lock_timeout = '2s'`);
    await defining.query('select millrace.define($1)', [of(120)]);
    await judge('second');
    await judging.query('commit');
    await defining.query('commit');
    await minutes(engine, 1);
    const raised = `select rule from millrace.alerts where pipeline = 'flow' and rule in ('first', 'second') order by id`;
    expect(await engine.rows(raised)).toEqual([{ rule: 'first' }, { rule: 'second' }]);
  });

  test.each<[string, Row, RegExp]>([
    ['a stage that it does not have', { kind: 'backlog', stage: 'gone', above: 1 }, /alerts\.new\.stage names gone/],
    ['the engine', { kind: 'engine' }, /alerts.*kind/],
    ['no bound', { kind: 'backlog' }, /alerts\.new\.above is missing/],
    ['an option that there is not', { kind: 'backlog', above: 1, below: 1 }, /below/],
  ])('is refused for a rule about %s', async (_, rule, message) => {
    const { createEngine } = await import('../../support/engine.ts');
    const engine = await createEngine();
    try {
      const definition = await engine.pipeline([{ name: 'only' }]);
      const refusal = await engine.refusedDefinition({ ...definition, alerts: { new: rule } });
      expect(refusal).toMatchObject({ code: 'MR001', message: expect.stringMatching(message) });
    } finally {
      await engine.database.drop();
    }
  });
});
