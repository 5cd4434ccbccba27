import { describe, expect } from 'vitest';
import {
  addChannel,
  addRule,
  deliver,
  minutes,
  note,
  onlyRule,
  parseMessages,
  take,
} from '../../support/engine/alerts.ts';
import { type Engine, findingsTest as test } from '../../support/engine.ts';
import { openTransaction } from '../../support/sessions.ts';
import { failed, runStage, Worker } from '../../support/worker.ts';

const backlog = { name: 'backlog', kind: 'backlog', stage: '*', above: 2, recover: '0' };
const deliveries = (engine: Engine) =>
  engine.rows(`select c.name as channel, m.state, m.tries, m.status, m.error
     from millrace.alert_messages m join millrace.alert_channels c on c.id = m.channel_id order by m.id`);
const finding = async (engine: Engine) =>
  (await engine.rows<{ ok: boolean; detail: string }>(`select ok, detail from millrace.alert_findings`))[0];

type Answer = Record<string, unknown>;
const act = (engine: Engine, verb: string, request: object) =>
  engine.value<Answer>('select public.millrace_act($1)', [JSON.stringify({ verb, ...request })]);
const refusedAct = (engine: Engine, verb: string, request: object) =>
  engine.refusal('select public.millrace_act($1)', [JSON.stringify({ verb, ...request })]);
/** The remedy that doctor() says is to be done about messages that are dead. */
const resend = `update millrace.alert_messages set state = 'waiting', first_tried_at = null, ended_at = null where state = 'dead'`;
const testChannel = (engine: Engine) => act(engine, 'test_channel', { channel: 'ops' });

/** One stage with a backlog, of which nobody has been told. */
async function alarmed(engine: Engine, channels: string[] = ['ops'], rule: object = {}): Promise<void> {
  await engine.configureWakeUps();
  await engine.pipeline([{ name: 'only' }]);
  for (const channel of channels) await addChannel(engine, channel);
  await onlyRule(engine, { ...backlog, ...rule });
  await engine.queued('only', 3);
  await minutes(engine, 1);
}

test('a message reports the beginning and the end of an alert, each once', async ({ engine }) => {
  await alarmed(engine);
  expect(await deliver(engine)).toEqual(['raised backlog']);
  await minutes(engine, 20);
  expect(await deliver(engine)).toEqual([]);
  await runStage(engine, 'only');
  await minutes(engine, 5);
  expect(await deliver(engine)).toEqual(['resolved backlog']);
  await minutes(engine, 20);
  expect(await deliver(engine)).toEqual([]);
});

test('the sweep wakes the function that sends while something is due, and only then', async ({ engine }) => {
  await alarmed(engine);
  const wakes = async () =>
    (await engine.wakes()).filter(({ url }) => url.endsWith('/functions/v1/millrace/alerts')).length;
  expect(await wakes()).toBe(1);
  await deliver(engine);
  await engine.advance('10 seconds');
  await engine.sql.query('select millrace.sweep()');
  expect(await wakes()).toBe(1);
});

test('all alerts of a minute are one message a channel, and each channel has its own', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.pipeline([{ name: 'only' }], { table: 'public.others' }, 'other');
  await addChannel(engine, 'ops');
  await addChannel(engine, 'boss');
  await onlyRule(engine, backlog);
  await addRule(engine, { ...backlog, name: 'all', stage: null, channels: ['ops'] });
  await engine.queued('only', 3);
  await engine.sql.query(`insert into public.others (label) select 'x' from generate_series(1, 3)`);
  await engine.sql.query(`update public.others set only_status = 'queued'`);
  await minutes(engine, 1);
  const taken = await take(engine);
  expect(taken.map(({ channel, events }) => [channel, events.map(({ rule }) => rule)])).toEqual([
    ['ops', ['backlog', 'backlog', 'all', 'all']],
    ['boss', ['backlog', 'backlog']],
  ]);
});

test('a message lists fifty events and counts the others', async ({ engine }) => {
  await engine.pipeline(Array.from({ length: 60 }, (_, at) => ({ name: `s${at}` })));
  await addChannel(engine);
  await onlyRule(engine, { ...backlog, above: 0 });
  const ids = await engine.insert(1);
  for (let at = 0; at < 60; at++) await engine.queue(`s${at}`, ids);
  await minutes(engine, 1);
  expect(await take(engine)).toMatchObject([{ events: { length: 50 }, more: 10 }]);
});

describe('a receiver', () => {
  test('that answers 500 for an hour is told all of it in the end, and nothing twice within a minute', async ({
    engine,
  }) => {
    await alarmed(engine);
    const tries: { at: number; id: string }[] = [];
    for (let minute = 0; minute < 60; minute++) {
      for (const message of await take(engine)) {
        tries.push({ at: (await engine.now()).getTime(), id: message.webhook_id });
        expect(await note(engine, message, { ok: false, status: 500, error: 'it answered 500' })).toBe(1);
      }
      if (minute === 10) await runStage(engine, 'only');
      if (minute === 20) await engine.queued('only', 4);
      await minutes(engine, 1);
    }
    expect(new Set(tries.map(({ id }) => id)).size, 'the same message again and again').toBe(1);
    const pauses = tries.slice(1).map(({ at }, place) => (at - (tries[place]?.at ?? 0)) / 60_000);
    expect(pauses).toEqual([1, 2, 4, 8, 16]);
    await minutes(engine, 30);
    expect(await deliver(engine)).toEqual(['raised backlog']);
    expect(await deliver(engine), 'what came meanwhile').toEqual(['resolved backlog', 'raised backlog']);
    expect(await deliver(engine)).toEqual([]);
  });

  test('that is down while there is much to tell hears of the newest fifty events in one message', async ({
    engine,
  }) => {
    await alarmed(engine);
    await take(engine);
    for (let round = 0; round < 26; round++) {
      await runStage(engine, 'only');
      await minutes(engine, 1);
      await engine.queued('only', 3);
      await minutes(engine, 1);
    }
    expect(await deliver(engine)).toEqual(['raised backlog']);
    const [message] = await take(engine);
    expect(message).toMatchObject({ more: 2, events: { length: 50 } });
    expect(message?.events.map(({ event }) => event).slice(-2)).toEqual(['resolved', 'raised']);
    expect(await engine.value('select max(id)::text from millrace.alerts')).toBe(`${message?.events.at(-1)?.alert}`);
    await note(engine, message, { ok: true, status: 200 });
    expect(await take(engine)).toEqual([]);
  });

  test('that asks for time has it, up to six hours', async ({ engine }) => {
    await alarmed(engine);
    const [message] = await take(engine);
    await note(engine, message, { ok: false, status: 429, retry_after_ms: 600_000 });
    await engine.advance('599 seconds');
    expect(await take(engine)).toEqual([]);
    await engine.advance('1 second');
    const [again] = await take(engine);
    expect(again).toMatchObject({ webhook_id: message?.webhook_id, try: 2 });
    await note(engine, again, { ok: false, status: 429, retry_after_ms: 1e15 });
    await engine.advance('6 hours');
    expect(await take(engine)).toHaveLength(1);
  });

  test('that cannot be reached for a day has its message dead-lettered, which doctor shows with the remedy', async ({
    engine,
  }) => {
    await alarmed(engine);
    for (let hour = 0; hour < 30; hour++) {
      for (const message of await take(engine)) await note(engine, message, { ok: false, status: 503, error: 'busy' });
      await engine.advance('1 hour');
    }
    expect(await deliveries(engine)).toMatchObject([{ channel: 'ops', state: 'dead', status: 503, error: 'busy' }]);
    expect(await finding(engine)).toEqual({
      ok: false,
      detail: `messages that channel ops could not deliver: 1, the last because: busy; correct it, then ${resend}`,
    });
    await engine.sql.query(resend);
    expect(await deliver(engine)).toEqual(['raised backlog']);
    expect(await finding(engine)).toMatchObject({ ok: true });
  });

  test('whose message nobody reports of for a day has that dead-lettered, and hears of the next', async ({
    engine,
  }) => {
    await alarmed(engine);
    for (let hour = 0; hour < 25; hour++) {
      expect(await take(engine)).toHaveLength(hour < 24 ? 1 : 0);
      await engine.advance('1 hour');
    }
    expect(await deliveries(engine)).toMatchObject([{ state: 'dead', error: 'nobody said what became of it' }]);
    await runStage(engine, 'only');
    await minutes(engine, 1);
    expect(await deliver(engine)).toEqual(['resolved backlog']);
  });

  test('that refuses a message for good has it dead-lettered at once, and hears of the next', async ({ engine }) => {
    await alarmed(engine);
    const [message] = await take(engine);
    await note(engine, message, { ok: false, status: 404, error: 'it answered 404', permanent: true });
    expect(await deliveries(engine)).toMatchObject([{ state: 'dead', tries: 1 }]);
    await runStage(engine, 'only');
    await minutes(engine, 1);
    expect(await deliver(engine)).toEqual(['resolved backlog']);
  });

  test('is sent again what it refused a minute after the last try at the earliest', async ({ engine }) => {
    await alarmed(engine);
    const [message] = await take(engine);
    await note(engine, message, { ok: false, status: 404, permanent: true });
    await engine.sql.query(resend);
    await engine.advance('59 seconds');
    expect(await take(engine)).toEqual([]);
    await engine.advance('1 second');
    expect(await take(engine)).toMatchObject([{ webhook_id: message?.webhook_id }]);
  });

  test('that hangs holds up no other channel', async ({ engine }) => {
    await alarmed(engine, ['slow', 'ops']);
    const [slow, fast] = await take(engine);
    expect(slow?.channel).toBe('slow');
    await note(engine, fast, { ok: true, status: 200 });
    await runStage(engine, 'only');
    await minutes(engine, 1);
    const after = await take(engine);
    expect(after.map(({ channel, events }) => `${channel} ${events[0]?.event}`)).toEqual([
      'slow raised',
      'ops resolved',
    ]);
  });
});

describe('a delivery', () => {
  test('of which nobody says what became is sent again after a minute, under the same id', async ({ engine }) => {
    await alarmed(engine);
    const [message] = await take(engine);
    await engine.advance('59 seconds');
    expect(await take(engine)).toEqual([]);
    await engine.advance('1 second');
    const [again] = await take(engine);
    expect(again).toMatchObject({ webhook_id: message?.webhook_id, try: 2 });
  });

  test('that succeeded late ends the message, and a failure of an earlier try changes nothing', async ({ engine }) => {
    await alarmed(engine);
    const [first] = await take(engine);
    await engine.advance('1 minute');
    const [second] = await take(engine);
    expect(await note(engine, first, { ok: false, error: 'late', permanent: true })).toBe(0);
    expect(await note(engine, first, { ok: true, status: 200 })).toBe(1);
    expect(await note(engine, second, { ok: false, error: 'no' })).toBe(0);
    expect(await deliveries(engine)).toMatchObject([{ state: 'delivered', tries: 2, status: 200 }]);
  });

  test('that fails raises no alert about itself', async ({ engine }) => {
    await alarmed(engine);
    await addRule(engine, { name: 'engine', kind: 'engine' });
    await engine.sql.query(`delete from millrace.log`);
    const before = await engine.value<string>('select detail from millrace.engine_values()');
    const [message] = await take(engine);
    await note(engine, message, { ok: false, error: 'gone', permanent: true });
    expect(await engine.value('select detail from millrace.engine_values()')).toBe(before);
  });

  test('is told once, in whichever order it is taken and joined by what happens meanwhile', async ({ engine }) => {
    await alarmed(engine);
    const sender = await openTransaction(engine);
    const { rows } = await sender.query<{ a: object }>('select public.millrace_take_messages() as a');
    await runStage(engine, 'only');
    await minutes(engine, 1);
    await sender.query('commit');
    const [first] = parseMessages(rows[0]?.a);
    expect(first?.events.map(({ event }) => event)).toEqual(['raised']);
    await note(engine, first, { ok: true, status: 200 });
    // In a transaction that is not over yet, as the sweep's may be.
    await engine.queued('only', 3);
    await engine.advance('1 minute');
    await sender.query('begin; select millrace.evaluate_rules()');
    expect(await take(engine), 'joined just now').toEqual([]);
    await sender.query('commit');
    expect(await deliver(engine)).toEqual(['resolved backlog', 'raised backlog']);
    expect(await deliver(engine)).toEqual([]);
  });

  test('is taken once by two functions that are woken at once', async ({ engine }) => {
    await alarmed(engine);
    const sessions = await Promise.all([1, 2].map(() => engine.database.connect('service_role')));
    const taken = await Promise.all(
      sessions.map(async (session) => (await session.query('select public.millrace_take_messages() as a')).rows[0].a),
    );
    expect(taken.flatMap(({ messages }) => messages)).toHaveLength(1);
  });

  test('holds the address and the secret out of Vault, and says where one is missing', async ({ engine }) => {
    await alarmed(engine);
    await engine.sql.query(`insert into millrace.alert_channels (name, kind) values ('bare', 'slack')`);
    await act(engine, 'test_channel', { channel: 'bare' });
    expect(await take(engine)).toMatchObject([
      { channel: 'ops', address: 'https://hooks.example.com/1', secret: expect.stringMatching(/^whsec_/) },
      { channel: 'bare', address: null, secret: null },
    ]);
  });
});

describe('a silence', () => {
  test('keeps an alert quiet for its time; what is still open then is told', async ({ engine }) => {
    await engine.pipeline([{ name: 'only' }]);
    await addChannel(engine);
    await onlyRule(engine, backlog);
    const place = { pipeline: 'flow', stage: 'only' };
    await act(engine, 'silence', { minutes: 15, reason: 'the importer runs', ...place });
    await engine.queued('only', 3);
    await minutes(engine, 14);
    expect(await deliver(engine)).toEqual([]);
    expect(await engine.rows('select notified_at from millrace.alerts')).toEqual([{ notified_at: null }]);
    await minutes(engine, 1);
    expect(await deliver(engine)).toEqual(['raised backlog']);
  });

  test('lets what came and went pass without a word', async ({ engine }) => {
    await engine.pipeline([{ name: 'only' }]);
    await addChannel(engine);
    await onlyRule(engine, backlog);
    await act(engine, 'silence', { minutes: 15, reason: 'we know' });
    await engine.queued('only', 3);
    await minutes(engine, 5);
    await runStage(engine, 'only');
    await minutes(engine, 15);
    expect(await deliver(engine)).toEqual([]);
  });

  test('is about what it names alone, and ends when somebody ends it', async ({ engine }) => {
    await alarmed(engine);
    await engine.sql.query(`delete from millrace.alerts; delete from millrace.alert_messages`);
    await engine.pipeline([{ name: 'only' }], { table: 'public.others' }, 'other');
    const { silence } = await act(engine, 'silence', { minutes: 60, reason: 'we know', pipeline: 'other' });
    await minutes(engine, 1);
    expect(await deliver(engine)).toEqual(['raised backlog']);
    await engine.sql.query(`insert into public.others (label) select 'x' from generate_series(1, 3)`);
    await engine.sql.query(`update public.others set only_status = 'queued'`);
    await minutes(engine, 2);
    expect(await deliver(engine)).toEqual([]);
    await act(engine, 'unsilence', { silence });
    await minutes(engine, 1);
    expect(await deliver(engine)).toEqual(['raised backlog']);
    expect(await refusedAct(engine, 'unsilence', { silence })).toMatchObject({ code: 'MR003' });
  });

  test('is refused without a reason, without an end, and for what there is not', async ({ engine }) => {
    await engine.pipeline([{ name: 'only' }]);
    const refused = async (request: object) => (await refusedAct(engine, 'silence', request)).code;
    const said = { minutes: 60, reason: 'why' };
    expect(await refused({ ...said, reason: ' ' })).toBe('MR002');
    expect(await refused({ ...said, minutes: 0 })).toBe('MR002');
    expect(await refused({ reason: 'why' })).toBe('MR002');
    expect(await refused({ ...said, pipeline: 'gone' })).toBe('MR003');
    expect(await refused({ ...said, pipeline: 'flow', stage: 'gone' })).toBe('MR003');
    expect(await refused({ ...said, kind: 'gone' })).toBe('MR003');
  });
});

describe('alerts of one cause', () => {
  const dead = { kind: 'dead', stage: '*', above: 0, span: '1 hour' };
  /** Two stages that fail with a code each, the second two minutes after the first; what is told meanwhile. */
  async function failTwice(engine: Engine, codes: [string, string]): Promise<(string | null)[][]> {
    await engine.pipeline([{ name: 'first' }, { name: 'second' }, { name: 'third' }]);
    await addChannel(engine);
    await onlyRule(engine, { ...dead, name: 'dead' });
    const told = [];
    for (const [at, stage] of ['first', 'second'].entries()) {
      await engine.queued(stage, 1);
      const worker = await Worker.of(engine, stage);
      await worker.report(failed(await worker.takeOne(), { permanent: true, code: codes[at] ?? '', message: 'no' }));
      await worker.leave();
      for (let minute = 0; minute < 2; minute++) {
        await minutes(engine, 1);
        told.push(...(await take(engine)));
        for (const message of told) await note(engine, message, { ok: true, status: 200 });
      }
    }
    await minutes(engine, 5);
    told.push(...(await take(engine)));
    return told.map(({ events }) => events.map(({ stage, detail }) => `${stage} ${detail}`));
  }

  test('are told together: what follows within five minutes waits for the end of them', async ({ engine }) => {
    const events = await failTwice(engine, ['model_down', 'model_down']);
    expect(events).toEqual([['first model_down'], ['second model_down']]);
    const told = await engine.rows<{ stage: string; waited: string }>(
      `select stage, (notified_at - raised_at)::text as waited from millrace.alerts order by id`,
    );
    expect(told).toEqual([
      { stage: 'first', waited: '00:00:00' },
      { stage: 'second', waited: '00:03:00' },
    ]);
  });

  test('are those of one code, or of one limit at which a service refuses, whatever time it names', async ({
    engine,
  }) => {
    const cause = (kind: string, detail: string) =>
      engine.value<string | null>(
        `select millrace.alert_json(jsonb_populate_record(null::millrace.alerts,
           jsonb_build_object('kind', $1::text, 'detail', $2::text))) ->> 'cause'`,
        [kind, detail],
      );
    const refused = (limit: string, until: string) =>
      cause('refused', `limit ${limit}: it takes nothing until ${until}: a service asked for patience`);
    expect(await refused('model', '2026-11-03 09:01:00')).toBe(
      'limit model: it takes nothing: a service asked for patience',
    );
    expect(await refused('model', '2026-11-03 10:00:59')).toBe(await refused('model', '2026-11-03 09:01:00'));
    expect(await refused('ocr', '2026-11-03 09:01:00')).not.toBe(await refused('model', '2026-11-03 09:01:00'));
    expect([await cause('dead', 'boom'), await cause('error_share', 'boom')]).toEqual(['boom', 'boom']);
    expect([await cause('backlog', 'boom'), await cause('engine', 'boom')]).toEqual([null, null]);
  });

  test('are told at once where the cause is another', async ({ engine }) => {
    await failTwice(engine, ['model_down', 'boom']);
    expect(
      await engine.value(`select bool_and(notified_at = raised_at) from millrace.alerts where notified_at is not null`),
    ).toBe(true);
  });
});

test('an alert of which the rule is below its bound again, before anybody was told, is not told', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only' }]);
  await addChannel(engine);
  await onlyRule(engine, { ...backlog, recover: '5 minutes' });
  const { silence } = await act(engine, 'silence', { minutes: 60, reason: 'we know' });
  await engine.queued('only', 3);
  await minutes(engine, 1);
  await runStage(engine, 'only');
  await minutes(engine, 1);
  await act(engine, 'unsilence', { silence });
  await minutes(engine, 1);
  expect(await engine.value('select count(*)::int from millrace.alerts where resolved_at is null')).toBe(1);
  expect(await deliver(engine)).toEqual([]);
  await minutes(engine, 6);
  expect(await engine.rows('select settled from millrace.alerts')).toEqual([{ settled: true }]);
  expect(await deliver(engine)).toEqual([]);
});

test('a message says how its alerts stand when it is sent, and where the page and the playbooks are', async ({
  engine,
}) => {
  await alarmed(engine);
  const [first] = await take(engine);
  expect(first?.events).toMatchObject([{ value: 3, value_now: 3, cause: null }]);
  expect(first?.events[0]?.playbook).toMatch(
    /^https:\/\/app\.unpkg\.com\/millrace@\d+\.\d+\.\d+\/files\/docs\/playbooks\/throttle\.md$/,
  );
  expect(first?.events[0]?.links).toMatchObject({ page: null, silence: null });
  await note(engine, first, { ok: false, status: 503 });
  await engine.queued('only', 4);
  await minutes(engine, 1);
  await engine.sql.query(`update millrace.settings set value = case name
    when 'page_url' then 'https://ops.test/operate/' else 'https://wiki.test/p' end
    where name in ('page_url', 'playbooks_url')`);
  const [second] = await take(engine);
  expect(second).toMatchObject({ webhook_id: first?.webhook_id, events: [{ value: 3, value_now: 7, now: 'now 7' }] });
  expect(second?.events[0]).toMatchObject({
    playbook: 'https://wiki.test/p/throttle.md',
    links: { silence: expect.stringMatching(/^https:\/\/ops\.test\/operate\/#\/alerts\?silence=\d+&minutes=60$/) },
  });
  await note(engine, second, { ok: false, status: 503 });
  await runStage(engine, 'only');
  await minutes(engine, 2);
  const [third] = await take(engine);
  expect(third?.events[0]).toMatchObject({
    value: 3,
    value_now: null,
    now: expect.stringMatching(/^(over by now|no longer above its bound since .* UTC; it ends at .* UTC)$/),
  });
});

test('the engine’s own alert stands first, and no fifty others push it out of a message', async ({ engine }) => {
  await engine.pipeline(Array.from({ length: 60 }, (_, at) => ({ name: `s${at}` })));
  await addChannel(engine);
  await onlyRule(engine, { ...backlog, above: 0 });
  await addRule(engine, { name: 'engine', kind: 'engine' });
  await engine.sql.query(`select millrace.report('error', 'rule_failed', 'it is broken', '{}')`);
  const ids = await engine.insert(1);
  for (let at = 0; at < 30; at++) await engine.queue(`s${at}`, ids);
  await minutes(engine, 1);
  for (let at = 30; at < 60; at++) await engine.queue(`s${at}`, ids);
  await minutes(engine, 1);
  const [message] = await take(engine);
  expect(message).toMatchObject({ events: { length: 50 }, more: 11 });
  expect(message?.events.filter(({ kind }) => kind === 'engine')).toHaveLength(1);
});

test('a test goes out by its channel at once', async ({ engine }) => {
  await engine.configureWakeUps();
  await addChannel(engine);
  await testChannel(engine);
  expect(await engine.wakes()).toHaveLength(1);
  expect(await deliver(engine)).toEqual(['test']);
  expect(await deliver(engine)).toEqual([]);
  expect(await refusedAct(engine, 'test_channel', { channel: 'gone' })).toMatchObject({
    code: 'MR003',
    hint: 'Those there are: select * from millrace.alert_channels.',
  });
});

test('doctor shows a channel whose messages nobody takes, and rules that name what there is not', async ({
  engine,
}) => {
  expect(await finding(engine)).toMatchObject({ ok: true, detail: expect.stringContaining('nobody is told') });
  await alarmed(engine, ['ops']);
  expect(await finding(engine)).toEqual({ ok: true, detail: 'ops' });
  await minutes(engine, 6);
  expect(await finding(engine)).toMatchObject({
    ok: false,
    detail: expect.stringContaining('see the log of millrace'),
  });
  await deliver(engine);
  await addRule(engine, { ...backlog, name: 'lost', channels: ['gone'] });
  expect((await finding(engine))?.detail).toMatch(
    /^rule lost names channel gone, which there is not: correct it in millrace.alert_rules/,
  );
});

test('the end of an alert whose rule is gone is told to those alone who heard of it', async ({ engine }) => {
  await alarmed(engine, ['ops', 'boss'], { pipeline: 'flow', channels: ['ops'] });
  expect(await deliver(engine)).toEqual(['raised backlog']);
  await engine.sql.query('delete from millrace.alert_rules');
  await minutes(engine, 1);
  expect((await take(engine)).map(({ channel, events }) => [channel, events[0]?.event])).toEqual([['ops', 'resolved']]);
});

test('without a channel nothing is sent, and a later channel gets the alerts that are open', async ({ engine }) => {
  await alarmed(engine, []);
  expect(await engine.value('select count(*)::int from millrace.alert_messages')).toBe(0);
  await addChannel(engine);
  await minutes(engine, 1);
  expect(await deliver(engine)).toEqual(['raised backlog']);
});

test('a channel that is switched off is sent nothing until it is switched on', async ({ engine }) => {
  await alarmed(engine);
  await engine.sql.query('update millrace.alert_channels set enabled = false');
  expect(await take(engine)).toEqual([]);
  expect(await refusedAct(engine, 'test_channel', { channel: 'ops' })).toMatchObject({
    code: 'MR003',
    hint: 'Those there are: select * from millrace.alert_channels.',
  });
  await engine.sql.query('update millrace.alert_channels set enabled = true');
  expect(await deliver(engine)).toEqual(['raised backlog']);
});

test('a call with what is no list is refused with the remedy', async ({ engine }) => {
  const refusal = await engine.refusal(`select public.millrace_note_deliveries('{}')`);
  expect(refusal).toMatchObject({ code: 'MR002' });
  expect(refusal.hint).toBeTruthy();
});

test('old alerts and messages are pruned, open ones are not', async ({ engine }) => {
  await alarmed(engine);
  await deliver(engine);
  await runStage(engine, 'only');
  await minutes(engine, 2);
  await deliver(engine);
  await engine.queued('only', 3);
  await minutes(engine, 1);
  await engine.advance('91 days');
  await engine.sql.query('select millrace.prune()');
  expect(await engine.rows('select resolved_at from millrace.alerts')).toEqual([{ resolved_at: null }]);
  expect(await engine.rows('select state from millrace.alert_messages')).toEqual([{ state: 'waiting' }]);
});
