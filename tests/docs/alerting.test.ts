import { expect } from 'vitest';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { definitionOf } from '../support/definitions.ts';
import { deliver, minutes, note, take } from '../support/engine/alerts.ts';
import { test } from '../support/engine.ts';
import { docsFolder, messageOf, testPage } from './page.ts';
import { finish, start } from './play.ts';

const open = testPage('alerting', docsFolder);

test('channels are set up, tried, told, and told again once they are corrected', async ({ engine }) => {
  const page = await open(engine);
  await page.run(engine, `insert into millrace.alert_channels (name, kind) values`);
  await page.run(engine, `select vault.create_secret('https://hooks.slack.com`);
  await page.run(engine, `insert into millrace.alert_channels (name, kind, sender)`);
  await page.run(engine, `select vault.create_secret('ops@example.com`);
  await page.run(engine, `select vault.create_secret('re_`);
  await page.run(engine, `select public.millrace_act('{"verb": "test_channel"`);
  const [message] = await take(engine);
  expect(message).toMatchObject({
    channel: 'chat',
    kind: 'slack',
    address: 'https://hooks.slack.com/services/T0/B0/x',
  });
  await note(engine, message, { ok: false, status: 404, error: 'The receiver answered 404', permanent: true });
  expect(await page.run(engine, 'select c.name, m.state')).toMatchObject([
    { name: 'chat', state: 'dead', tries: 1, status: 404 },
  ]);
  expect(await page.run(engine, 'select what, ok, detail')).toMatchObject([{ ok: false }]);
  await page.run(engine, 'update millrace.alert_messages');
  await engine.advance('1 minute');
  expect(await deliver(engine)).toEqual(['test']);
});

test('a rule of a definition takes the place of the default, and people silence', async ({ engine }) => {
  const page = await open(engine);
  const claims = page.exported<PipelineDefinition>('claims');
  await page.run(engine, 'update millrace.alert_rules');
  expect(
    await engine.rows(`select name, source, above from millrace.alert_rules where pipeline = 'claims' order by name`),
  ).toEqual([
    { name: 'backlog', source: 'definition', above: '20000' },
    { name: 'budget', source: 'definition', above: '50' },
    { name: 'waits', source: 'definition', above: '0' },
  ]);
  const [silenced] = await page.run(engine, `select public.millrace_act('{"verb": "silence"`);
  const silence = silenced?.millrace_act as { silence: number };
  await start(engine, claims, await engine.value(`insert into public.claims (owner) values ('a') returning id`));
  await minutes(engine, 11);
  const alert = (await page.run(engine, 'select id, rule')).find(({ rule }) => rule === 'waits');
  expect(alert).toMatchObject({
    rule: 'waits',
    pipeline: 'claims',
    stage: 'assess',
    above: '0',
  });
  expect(await page.run(engine, 'select id, pipeline, stage, kind, until')).toMatchObject([
    { pipeline: 'claims', reason: 'the importer runs' },
  ]);
  await page.run(engine, `select public.millrace_act('{"verb": "unsilence"`, { 3: String(silence.silence) });
  await finish(engine, claims, 'assess');
  await minutes(engine, 7);
  page.expectPromised(
    await messageOf(() =>
      engine.rows('select public.millrace_act($1)', [
        { verb: 'silence', alert: 99, minutes: 5, reason: 'it is known' },
      ]),
    ),
  );
});

test('each error of alerting has the words of its page', async ({ engine }) => {
  const page = await open(engine);
  const claims = definitionOf<{ alerts: Record<string, object> }>(page.exported<PipelineDefinition>('claims'));
  const refused = async (statement: string) => page.expectPromised(await messageOf(() => engine.rows(statement)));
  const wrong = { ...claims, alerts: { waits: { ...claims.alerts.waits, stage: 'asses' } } };
  page.expectPromised(await messageOf(() => engine.define(wrong)));
  await refused(
    `insert into millrace.alert_rules (name, kind, pipeline, above) values ('waits', 'backlog', 'claim', 1)`,
  );
  await refused(`insert into millrace.alert_rules (name, kind) values ('waits', 'backlog')`);
  await refused(`select public.millrace_act('{"verb": "test_channel", "channel": "chatt"}')`);
  await refused(`select public.millrace_act('{"verb": "silence", "minutes": 60, "reason": " "}')`);
});
