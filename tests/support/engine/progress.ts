// Callers of millrace_progress(): rows of public.items with an owner, whom a policy lets see their own.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { Engine, Row } from '../engine.ts';

export interface Seen {
  pipeline: string;
  key: string;
  version: string | null;
  progress: { run: Row | null; stages: Record<string, Row> } | null;
  expected_end: string | null;
}

export const red = '11111111-1111-4111-8111-111111111111';
export const blue = '22222222-2222-4222-8222-222222222222';

/** Gives public.items an owner, and lets each signed-in user see their own rows alone. */
export async function ownItems(engine: Engine): Promise<void> {
  await engine.sql.query(`
    alter table public.items add column if not exists owner uuid;
    alter table public.items enable row level security;
    grant select on public.items to authenticated;
    create policy own on public.items for select to authenticated using (owner = (select auth.uid()))`);
}

/** A session of a signed-in user, as the Data API opens one. */
export const userOf = (engine: Engine, sub: string): Promise<pg.Client> =>
  engine.database.connect('authenticated', { sub });

/** Asks for the progress of rows of `flow`; with a client's id they are watched. */
export async function progressOf(
  client: pg.Client,
  rows: Record<string, string | null>,
  watcher: string | null = null,
  pipeline = 'flow',
): Promise<{ topic: string | null; rows: Seen[] }> {
  const statement = 'select public.millrace_progress($1, $2) as answer';
  const { rows: answers } = await client.query(statement, [JSON.stringify({ [pipeline]: rows }), watcher]);
  return answers[0].answer;
}

/** Asks for one row of `flow`. */
export async function seen(client: pg.Client, id: string | undefined, pipeline = 'flow'): Promise<Seen> {
  const { rows } = await progressOf(client, { [String(id)]: null }, null, pipeline);
  if (!rows[0]) throw new Error(`nothing was said of ${id}`);
  return rows[0];
}

/** Watches rows as a client of its own. */
export async function watch(client: pg.Client, ids: string[], watcher: string = randomUUID()): Promise<void> {
  await progressOf(client, Object.fromEntries(ids.map((id) => [id, null])), watcher);
}

/** The messages that were sent to watchers so far, in order. */
export const sent = (engine: Engine): Promise<{ topic: string; keys: string[]; private: boolean }[]> =>
  engine.rows(`select topic, private, payload -> 'keys' as keys from realtime.messages order by inserted_at, id`);
