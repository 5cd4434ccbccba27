import { Webhook } from 'standardwebhooks';
import { describe, expect, onTestFinished } from 'vitest';
import { databaseRpc } from '../../../packages/test/database-rpc.ts';
import { answerAlertsWakeUp } from '../../../supabase/functions/_millrace/alerts/send-alerts.ts';
import { addChannel, minutes, onlyRule } from '../../support/engine/alerts.ts';
import { type Engine, findingsTest as test } from '../../support/engine.ts';
import { type Reply, startServer } from '../../support/http-server.ts';
import { failed, runStage, Worker } from '../../support/worker.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const env = {
  SUPABASE_URL: 'http://project.test',
  SUPABASE_SERVICE_ROLE_KEY: 'k',
  ALERT_ALLOW_HOSTS: '127.0.0.1',
};

/** Wakes the function that sends, over the test's database, until it has done all that is due. */
async function wake(engine: Engine, answerTimeMs = 10_000): Promise<void> {
  const client = await engine.database.connect('service_role');
  const working: Promise<void>[] = [];
  const answer = answerAlertsWakeUp(
    env,
    (work) => working.push(work),
    () => databaseRpc(client),
    answerTimeMs,
  );
  const request = new Request('http://project.test/functions/v1/millrace/alerts', {
    method: 'POST',
    headers: { apikey: 'k' },
    body: '{}',
  });
  expect((await answer(request)).status).toBe(202);
  await Promise.all(working);
  engine.database.giveBack(client);
}

/** A receiver that answers like this, as the channel of this name. */
async function receiver(engine: Engine, reply: () => Reply | null, name = 'ops') {
  const server = await startServer(() => reply());
  await addChannel(engine, name, { kind: 'webhook', address: `${server.url}/hook`, secret });
  const read = () =>
    server.received.map(({ body, headers }) => {
      const sent = new Webhook(secret).verify(body, headers as Record<string, string>) as {
        data: { events: { event: string; rule: string; message: string }[] };
      };
      return { id: headers['webhook-id'], events: sent.data.events };
    });
  return { read, received: server.received };
}

/** Fails so many items for good. */
async function failures(engine: Engine, count: number): Promise<void> {
  await engine.queued('only', count);
  const worker = await Worker.of(engine, 'only');
  const items = await worker.take(count);
  await worker.report(...items.map((item) => failed(item, { permanent: true, code: 'boom', message: 'it is broken' })));
  await worker.leave();
}

test('alerts fire on synthetic failure: whoever listens hears within a minute which stage, and of its end', async ({
  engine,
}) => {
  await engine.configureWakeUps();
  await engine.pipeline([{ name: 'only' }]);
  const { read } = await receiver(engine, () => ({}));
  await minutes(engine, 1);
  await engine.sql.query('update millrace.alert_messages set state = $1', ['delivered']);
  await failures(engine, 25);
  await minutes(engine, 1);
  await wake(engine);
  const told = read().flatMap(({ events }) => events);
  expect(told.map(({ event, rule }) => `${event} ${rule}`)).toEqual(['raised errors', 'raised dead']);
  expect(told[0]?.message).toBe(
    '100 % of what ended at only of flow in the last 10 minutes failed, most often as boom, above 10 %',
  );
  await minutes(engine, 20);
  await wake(engine);
  expect(
    read()
      .slice(1)
      .flatMap(({ events }) => events.map(({ event, rule }) => `${event} ${rule}`)),
  ).toContain('resolved errors');
});

describe('a receiver', () => {
  /** A backlog that is there to tell. */
  async function alarmed(engine: Engine): Promise<void> {
    await engine.configureWakeUps();
    await engine.pipeline([{ name: 'only' }]);
    await onlyRule(engine, { name: 'backlog', kind: 'backlog', stage: '*', above: 2, recover: '0' });
    await engine.queued('only', 3);
  }

  test('that fails first hears the same message again a minute later, once', async ({ engine }) => {
    await alarmed(engine);
    let status = 500;
    const { read } = await receiver(engine, () => ({ status }));
    await minutes(engine, 1);
    await wake(engine);
    await wake(engine);
    expect(read(), 'not twice within a minute').toHaveLength(1);
    status = 200;
    await engine.advance('1 minute');
    await wake(engine);
    await engine.advance('1 hour');
    await wake(engine);
    expect(read()).toHaveLength(2);
    expect(new Set(read().map(({ id }) => id)).size).toBe(1);
    expect(await engine.rows('select state, tries from millrace.alert_messages')).toEqual([
      { state: 'delivered', tries: 2 },
    ]);
  });

  test('that hangs is tried again, and keeps nothing from another', async ({ engine }) => {
    await alarmed(engine);
    const slow = await receiver(engine, () => null, 'slow');
    const fast = await receiver(engine, () => ({}), 'fast');
    await minutes(engine, 1);
    await wake(engine, 300);
    expect([slow.received.length, fast.received.length]).toEqual([1, 1]);
    expect(
      await engine.rows(
        'select c.name as channel, m.state, m.error from millrace.alert_messages m join millrace.alert_channels c on c.id = m.channel_id order by 1',
      ),
    ).toEqual([
      { channel: 'fast', state: 'delivered', error: null },
      { channel: 'slow', state: 'waiting', error: 'The request timed out.' },
    ]);
  });

  test('that was told while the function died hears it again under the same id', async ({ engine }) => {
    await alarmed(engine);
    const { read } = await receiver(engine, () => ({}));
    await minutes(engine, 1);
    const client = await engine.database.connect('service_role');
    const rpc = databaseRpc(client);
    await Promise.all([
      new Promise<void>((resolve) => {
        const answer = answerAlertsWakeUp(
          { ...env, WORKER_SECONDS: '16' },
          (work) => void work.then(resolve),
          () => async (name, args, signal) =>
            name === 'millrace_note_deliveries'
              ? { data: null, error: { message: 'gone' }, status: 400 }
              : rpc(name, args, signal),
        );
        void answer(new Request('http://x.test', { method: 'POST', headers: { apikey: 'k' }, body: '{}' }));
      }),
    ]);
    await engine.advance('1 minute');
    await wake(engine);
    expect(read()).toHaveLength(2);
    expect(new Set(read().map(({ id }) => id)).size).toBe(1);
    expect(await engine.rows('select state, tries from millrace.alert_messages')).toMatchObject([
      { state: 'delivered' },
    ]);
  });

  test('of a thousand late runs hears one message', async ({ engine }) => {
    await engine.configureWakeUps();
    await engine.pipeline([{ name: 'only', sla_seconds: 60 }]);
    await onlyRule(engine, { name: 'late', kind: 'late', stage: '*' });
    const { read } = await receiver(engine, () => ({}));
    await engine.queued('only', 1000);
    for (let minute = 0; minute < 2; minute++) {
      await engine.advance('1 minute');
      // As pg_cron calls it: portion after portion.
      await engine.sweepAll();
    }
    await wake(engine);
    expect(read().flatMap(({ events }) => events.map(({ message }) => message))).toEqual([
      expect.stringMatching(/^1,000 runs are late at only of flow, for longest run \d+$/),
    ]);
    await runStage(engine, 'only');
  });
});

test('the function is woken with the wake-up secret or the secret key alone, and names a wrong setting', async () => {
  const answer = (given: object, headers: Record<string, string>) =>
    answerAlertsWakeUp(
      { ...env, ...given },
      (work) => onTestFinished(() => work.catch(() => {})),
      () => async () => ({
        data: { messages: [] },
        error: null,
        status: 200,
      }),
    )(new Request('http://x.test', { method: 'POST', headers, body: '{}' }));
  expect((await answer({}, {})).status).toBe(401);
  expect((await answer({}, { apikey: 'wrong' })).status).toBe(401);
  expect((await answer({ MILLRACE_WAKE_SECRET: 's' }, { 'x-millrace-wake-secret': 's' })).status).toBe(202);
  const wrong = await answer({ ALERT_ALLOW_HOSTS: 'http://a b' }, { apikey: 'k' });
  expect(wrong.status).toBe(500);
  expect(await wrong.text()).toContain('ALERT_ALLOW_HOSTS');
});
