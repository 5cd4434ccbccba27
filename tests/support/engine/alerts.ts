import { alertMessage } from '../../../supabase/functions/_millrace/alerts/alert-message.ts';
import { playbookOf, sayAlert } from '../../../supabase/functions/_millrace/alerts/say-alert.ts';
import { type AlertFacts, takenMessages } from '../../../supabase/functions/_millrace/engine/alert-contract.ts';
import type { Engine, Row } from '../engine.ts';

/** A message as the function that sends reads it. */
export interface TakenMessage {
  message: number;
  try: number;
  webhook_id: string;
  channel: string;
  kind: string;
  address: string | null;
  secret: string | null;
  events: (Row & { event: string; message: string; rule?: string; playbook?: string | null })[];
  more: number;
}

/** Sets a channel up; its address and secret are in Vault. */
export async function addChannel(
  engine: Engine,
  name = 'ops',
  { kind = 'webhook', address = 'https://hooks.example.com/1', secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' } = {},
): Promise<void> {
  const sender = kind === 'email' ? 'Millrace <alerts@example.com>' : null;
  await engine.sql.query('insert into millrace.alert_channels (name, kind, sender) values ($1, $2, $3)', [
    name,
    kind,
    sender,
  ]);
  await engine.sql.query('select vault.create_secret($1, $2)', [address, `millrace_channel_${name}_address`]);
  await engine.sql.query('select vault.create_secret($1, $2)', [secret, `millrace_channel_${name}_secret`]);
}

/** Leaves no rule but this one, which is inserted with these columns. */
export async function onlyRule(engine: Engine, columns: Row): Promise<void> {
  await engine.sql.query('delete from millrace.alert_rules');
  await addRule(engine, columns);
}

export async function addRule(engine: Engine, columns: Row): Promise<void> {
  const names = Object.keys(columns);
  await engine.sql.query(
    `insert into millrace.alert_rules (${names.join(', ')}) values (${names.map((_, at) => `$${at + 1}`).join(', ')})`,
    Object.values(columns),
  );
}

/** Moves the clock on by so many minutes, with a sweep in each. */
export async function minutes(engine: Engine, count: number): Promise<void> {
  for (let minute = 0; minute < count; minute++) {
    await engine.advance('1 minute');
    await engine.sql.query('select millrace.sweep()');
  }
}

/** Reads the engine's answer as the function millrace does. */
export const parseMessages = (answer: unknown): TakenMessage[] =>
  takenMessages.parse(answer).messages.map(alertMessage);

/** Takes what is due as the function millrace does. */
export async function take(engine: Engine): Promise<TakenMessage[]> {
  return parseMessages(await engine.value('select public.millrace_take_messages()'));
}

/** Says what came of a message that was taken. */
export async function note(engine: Engine, taken: TakenMessage | undefined, said: Row): Promise<number> {
  const { noted } = await engine.value<{ noted: number }>('select public.millrace_note_deliveries($1)', [
    JSON.stringify([{ message: taken?.message, try: taken?.try, ...said }]),
  ]);
  return noted;
}

/** Takes what is due, says that it was delivered, and returns each event as `event rule`, or `event` of a test. */
export async function deliver(engine: Engine): Promise<string[]> {
  const taken = await take(engine);
  for (const message of taken) await note(engine, message, { ok: true, status: 200 });
  return taken.flatMap(({ events }) => events.map(({ event, rule }) => [event, rule].filter(Boolean).join(' ')));
}

/** The alerts there are, each with its sentence and its playbook, by the rule where one is named. */
export async function told(engine: Engine, rule: string | null = null): Promise<(Row & { message: string })[]> {
  const rows = await engine.rows<{ of: Row & AlertFacts & { playbook: string | null } }>(
    `select millrace.alert_json(a) as of from millrace.alerts a where rule = coalesce($1, rule) order by id`,
    [rule],
  );
  return rows.map(({ of }) => ({ ...of, message: sayAlert(of), playbook: playbookOf(of) }));
}

/** Open alerts in order, as `rule place`. */
export async function open(engine: Engine): Promise<string[]> {
  const rows = await engine.rows<{ text: string }>(
    `select concat_ws(' ', rule, stage, pipeline) as text from millrace.alerts where resolved_at is null order by id`,
  );
  return rows.map(({ text }) => text);
}
