// One word for all: a stage that nobody works at says why wherever it is shown, and "well" means the same everywhere.
import { describe, expect } from 'vitest';
import { type Finding, findingLines } from '../../../cli/project/read-health.ts';
import { sayFault } from '../../../supabase/functions/_millrace/alerts/say-alert.ts';
import { minutes, open, told } from '../../support/engine/alerts.ts';
import { signIn, withSecretKey } from '../../support/engine/operators.ts';
import { chain, type Engine, type Row, findingsTest as test } from '../../support/engine.ts';
import { completed, failed, runStage, Worker } from '../../support/worker.ts';

interface Fault {
  kind: string;
  what: string;
  detail?: string;
  pipeline?: string;
  stage?: string;
  alert?: Row;
}
interface Well {
  ok: boolean;
  faults: Fault[];
  more: number;
  dead_last_day: string;
}
type Overview = { well: Well; stages: (Row & { stage: string; unattended?: Row })[] };

/** Sweeps every ten seconds, as pg_cron does. */
async function sweeps(engine: Engine, count: number): Promise<void> {
  for (let sweep = 0; sweep < count; sweep++) {
    await engine.advance('10 seconds');
    await engine.sql.query('select millrace.sweep()');
  }
}

/** Has the functions answer all wake-ups that wait, some seconds ago. */
async function answerWakes(engine: Engine, status: number, secondsAgo = 0): Promise<void> {
  const owner = await engine.database.connect('supabase_admin');
  await owner.query(
    `with sent as (delete from net.http_request_queue returning id)
     insert into net._http_response (id, status_code, created)
     select id, $1, now() - make_interval(secs => $2) from sent`,
    [status, secondsAgo],
  );
}

const faultsIn = ({ faults }: Well) => faults.map(({ kind, what }) => `${kind}: ${what}`);
const health = (engine: Engine) => engine.value<Well>('select public.millrace_health()');

/** A project of which doctor() finds all well, with one pipeline. */
async function healthy(engine: Engine, stages = ['only']): Promise<void> {
  const net = await engine.database.connect('supabase_admin');
  await net.query(`set application_name = 'pg_net 0.20.0'`);
  await engine.configureWakeUps();
  await engine.pipeline(chain(stages));
  await engine.sql.query('revoke all on public.items from anon, authenticated');
  await sweeps(engine, 1);
}

describe('a stage that nobody works at', () => {
  test('says why wherever it is shown: overview, pipeline, run, doctor() and health, and says it once', async ({
    engine,
  }) => {
    await healthy(engine, ['one', 'two']);
    const operator = await signIn(engine, 'ann', {});
    await engine.queued('one');
    await sweeps(engine, 3);
    await answerWakes(engine, 503, 14);
    expect(
      (await operator.ask<Overview>('overview')).stages.map(({ unattended }) => unattended),
      '30 s',
    ).toEqual([undefined, undefined]);
    await engine.advance('1 second');
    const why = expect.stringMatching(
      /^nobody takes it up: flow-one answered 503 1\d s ago: the function did not start$/,
    );
    const reason = {
      why,
      since: '2026-11-02T09:00:10+00:00',
      remedy: 'see the log of flow-one: in the dashboard under Edge Functions; locally in the terminal that serves it',
    };
    const { stages, well } = await operator.ask<Overview>('overview');
    expect(stages).toMatchObject([{ stage: 'one', unattended: reason }, { stage: 'two' }]);
    expect(stages[1]).not.toHaveProperty('unattended');
    const { health: own } = await operator.ask<{ health: Row[] }>('pipeline', { pipeline: 'flow' });
    expect(own[0]).toMatchObject({ unattended: reason });
    const run = Number(await engine.value('select id from millrace.runs'));
    expect(await operator.ask('run', { run })).toMatchObject({ unattended: [{ stage: 'one', ...reason }] });
    const whole = new RegExp(`: the function did not start; ${reason.remedy}$`);
    const fault = {
      detail: expect.stringMatching(whole),
      kind: 'stage',
      pipeline: 'flow',
      stage: 'one',
      what: 'one of flow',
    };
    expect(well).toMatchObject({ ok: false, faults: [fault] });
    expect(await health(engine)).toMatchObject({
      ok: false,
      faults: [fault],
    });
    // The findings that the sweep kept in the last minute knew of the answer alone.
    const keep = (functions: string) =>
      engine.sql.query(`insert into millrace.last_findings values ('the functions answered the last wake-ups', $1)`, [
        functions,
      ]);
    await keep('flow-one answered 503: the function did not start; see its log');
    expect((await operator.ask<Overview>('overview')).well.faults, 'told once').toMatchObject([fault]);
    await engine.sql.query('delete from millrace.last_findings');
    await keep('flow-one answered 503: no start; see its log. flow-two answered 503: no start; see its log');
    expect(faultsIn((await operator.ask<Overview>('overview')).well)).toHaveLength(2);
    await engine.sql.query('delete from millrace.last_findings');
    await runStage(engine, 'one');
    const after = await operator.ask<Overview>('overview');
    expect(after).toMatchObject({ well: { faults: [] } });
    expect(after.stages[0]).not.toHaveProperty('unattended');
    expect(await operator.ask('run', { run })).toMatchObject({ unattended: [] });
  });

  test.for<[number, string]>([
    [546, 'it used up its memory or CPU'],
    [404, 'it is not deployed'],
    [401, 'nothing more is known'],
    [202, 'but no worker came'],
  ])('is told what an answer of %i means', async ([status, means], { engine }) => {
    await healthy(engine);
    await engine.queued('only');
    await sweeps(engine, 4);
    await answerWakes(engine, status);
    expect(await engine.value('select cause from millrace.unattended()')).toBe(
      `flow-only answered ${status}: ${means}`,
    );
  });

  test('raises an alert within a minute, which names the cause, and none where a worker came', async ({ engine }) => {
    await healthy(engine, ['one', 'two']);
    await engine.queued('one');
    await answerWakes(engine, 503);
    await sweeps(engine, 4);
    expect(await open(engine)).toEqual([]);
    await sweeps(engine, 1);
    expect(await open(engine)).toEqual(['unattended one flow']);
    expect(await told(engine)).toMatchObject([
      {
        message:
          'nobody has taken up what is ready at one of flow for 50 seconds: flow-one answered 503: the function did not start',
        playbook: 'docs/playbooks/stuck.md',
      },
    ]);
    await runStage(engine, 'one');
    await sweeps(engine, 1);
    expect(await open(engine), 'it ends with the next sweep').toEqual([]);
    await runStage(engine, 'two');
    await engine.queued('one');
    const worker = await Worker.of(engine, 'one');
    await worker.take();
    await sweeps(engine, 1);
    expect(await engine.value('select count(*)::int from millrace.unattended()')).toBe(0);
  });

  test('is not one where the sweep has only just come back', async ({ engine }) => {
    await healthy(engine);
    await engine.queued('only');
    await engine.advance('10 minutes');
    await engine.sql.query('select millrace.sweep()');
    expect(await open(engine)).toEqual([]);
    await sweeps(engine, 1);
    expect(await open(engine)).toEqual(['unattended only flow']);
  });
});

describe('well', () => {
  test('means: no finding, no open alert that is not silenced, and a sweep that is on time', async ({ engine }) => {
    await healthy(engine);
    const operator = await signIn(engine, 'ann', {});
    const asked = async () => (await operator.ask<Overview>('overview')).well;
    await minutes(engine, 1);
    expect(await asked()).toMatchObject({ ok: true, faults: [], more: 0, dead_last_day: '0' });
    expect(await health(engine)).toMatchObject({ ok: true, faults: [] });

    await engine.sql.query(
      `insert into millrace.alert_rules (name, kind, stage, above) values ('some', 'backlog', '*', 0)`,
    );
    await engine.queued('only');
    for (let sweep = 0; sweep < 6; sweep++) {
      await (await Worker.of(engine, 'only')).claim(0);
      await sweeps(engine, 1);
    }
    expect(faultsIn(await asked())).toEqual(['alert: alert some']);
    expect(await asked()).toMatchObject({
      ok: false,
      faults: [{ alert: { kind: 'backlog', stage: 'only', value: 1 } }],
    });
    expect(await health(engine)).toMatchObject({ ok: false, faults: [{ kind: 'alert' }] });
    await operator.act('silence', { kind: 'backlog', minutes: 60, reason: 'planned' });
    expect(await asked()).toMatchObject({ ok: true, quiet_alerts: 1 });
    expect(await health(engine)).toMatchObject({ ok: true, quiet_alerts: 1 });
    const other = await signIn(engine, 'eve', { pipelines: ['other'] });
    expect((await other.ask<Overview>('overview')).well).toMatchObject({ ok: true, quiet_alerts: 0 });

    await operator.act('pause', { pipeline: 'flow', reason: 'planned' });
    expect(await asked(), 'the sweep looks once a minute').toMatchObject({ ok: true });
    expect(faultsIn(await health(engine))).toEqual(['finding: nothing is paused']);
    await minutes(engine, 1);
    expect(faultsIn(await asked())).toEqual(['finding: nothing is paused']);

    await engine.advance('61 seconds');
    expect(faultsIn(await asked()), 'the most urgent first').toEqual([
      'sweep: the sweep does not run',
      'finding: nothing is paused',
    ]);
  });

  test('is so again with the first judgement that finds a rule below its bound, while its alert recovers', async ({
    engine,
  }) => {
    await healthy(engine);
    const operator = await signIn(engine, 'ann', {});
    const asked = async () => (await operator.ask<Overview>('overview')).well;
    await engine.sql.query(
      `insert into millrace.alert_rules (name, kind, stage, above) values ('some', 'backlog', '*', 2)`,
    );
    await engine.queued('only', 3);
    await (await Worker.of(engine, 'only')).claim(0);
    await minutes(engine, 1);
    expect(faultsIn(await asked())).toContain('alert: alert some');
    expect(await asked()).toMatchObject({ quiet_alerts: 0 });
    expect((await asked()).faults.find(({ kind }) => kind === 'alert')?.alert).toMatchObject({ value_now: 3 });
    await runStage(engine, 'only');
    await minutes(engine, 1);
    expect(await open(engine)).toContain('some only flow');
    expect(await asked()).toMatchObject({ ok: true, quiet_alerts: 1 });
    expect(await health(engine)).toMatchObject({ ok: true });
  });

  test('is asked of what an operator sees, and counts the dead of the last day beside it', async ({ engine }) => {
    await healthy(engine);
    await engine.pipeline([{ name: 'also' }], {}, 'other');
    const operator = await signIn(engine, 'bob', { pipelines: ['other'] });
    await engine.queued('only', 3);
    const worker = await Worker.of(engine, 'only');
    const [first, second, third] = await worker.take();
    await worker.report(
      failed(first as never, { code: 'gone', permanent: true }),
      completed(second as never),
      failed(third as never, { code: 'gone', permanent: true }),
    );
    const all = await withSecretKey(engine);
    expect((await all.ask<Overview>('overview')).well.dead_last_day).toBe('2');
    expect((await operator.ask<Overview>('overview')).well).toMatchObject({ ok: true, dead_last_day: '0' });
    await engine.sql.query('update public.items set only_status = $1 where id = $2', ['queued', first?.entity_id]);
    expect((await all.ask<Overview>('overview')).well.dead_last_day, 'begun anew').toBe('1');
    await engine.advance('25 hours');
    expect((await all.ask<Overview>('overview')).well.dead_last_day).toBe('0');
    expect((await operator.ask<Overview>('overview')).well.faults).toMatchObject([{ kind: 'sweep' }]);
  });
});

test('a stage whose attempts end as misconfigured is a finding: which, how many, since when, and the message', async ({
  engine,
}) => {
  await healthy(engine, ['one', 'two']);
  const finding = () =>
    engine.rows<{ ok: boolean; detail: string }>(
      `select ok, detail from millrace.doctor() where what = 'no stage is misconfigured'`,
    );
  const ends = async (permanent: boolean) => {
    const worker = await Worker.of(engine, 'one');
    const items = await worker.take();
    const error = { code: 'misconfigured', message: 'There is no row in topic.', permanent };
    await worker.report(...items.map((item) => failed(item, error)));
    await worker.leave();
    await sweeps(engine, 1);
    return items;
  };
  const operator = await withSecretKey(engine);
  const isSaid = async () =>
    faultsIn((await operator.ask<Overview>('overview')).well).includes('finding: no stage is misconfigured');
  expect(await finding()).toEqual([{ ok: true, detail: 'none is' }]);
  await engine.advance('37 minutes');
  // In each minute it is the first sweep that keeps what doctor() finds.
  await sweeps(engine, 1);
  await engine.queued('one', 3);
  await ends(false);
  const since = '2026-11-02 09:37:00+00';
  const told = (n: number) => ({
    ok: false,
    detail:
      `one of flow since ${since} (attempts: ${n}): There is no row in topic. ` +
      'Once it is set right, hurry or retry these runs',
  });
  expect(await finding()).toEqual([told(3)]);
  expect(await isSaid(), 'at once').toBe(true);
  const found = await engine.rows<{ what: string; detail: string }>(
    `select what, detail from millrace.doctor() where not ok and detail ~ '^one of flow'`,
  );
  const words = 'one of flow since 2026-11-02 09:37 UTC (attempts: 3): There is no row in topic. ';
  expect(sayFault({ kind: 'finding', ...(found[0] as Finding) })).toContain(`a stage is misconfigured: ${words}`);
  expect(findingLines(found, '').join('\n')).toContain(`✗ a stage is misconfigured\n    ${words}`);
  await engine.advance('23 hours');
  expect(await finding(), 'they are still to be tried again').toMatchObject([{ ok: false }]);
  await sweeps(engine, 1);
  await runStage(engine, 'one');
  expect(await finding()).toMatchObject([{ ok: true }]);
  expect(await isSaid(), 'once it is mended').toBe(false);
  await engine.queued('one');
  await ends(true);
  expect(await finding(), 'a dead run shows it, too').toMatchObject([{ ok: false }]);
  await engine.advance('25 hours');
  expect(await finding()).toMatchObject([{ ok: true }]);
});
