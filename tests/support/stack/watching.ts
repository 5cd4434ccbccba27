// A page's supabase client beside a stack, and pipelines of tickets whose stages the test works by SQL.
import { randomUUID } from 'node:crypto';
import { createClient, type SupabaseClient } from '@supabase/supabase-js';
import pg from 'pg';
import { WebSocket } from 'undici';
import { type Stack, startStack } from '../../../local/platform/stack.ts';
import { compiled } from '../definitions.ts';
import { chain } from '../engine.ts';
import { completed, Worker } from '../worker.ts';

export interface Tickets {
  stack: Stack;
  owner: pg.Client;
  /** A ticket of a user; resolves to its key. */
  add(user: string, title?: string): Promise<string>;
  queue(key: string): Promise<void>;
  /** Works a stage until nothing is left there. */
  work(stage: string): Promise<void>;
  /** A client signed in as this user; `token` asks for the token of each call. */
  signIn(user: string, token?: () => Promise<string>, options?: { apiUrl?: string }): Promise<SupabaseClient>;
  stop(): Promise<void>;
}

/** A stack with the engine alone, and a pipeline `tickets` (read → answer) whose rows their owners may select. */
export async function startTickets(): Promise<Tickets> {
  const functionsDir = new URL('../../stack/functions', import.meta.url).pathname;
  const stack = await startStack({ services: false, functionsDir, fsync: false });
  const owner = new pg.Client({ connectionString: stack.dbUrl });
  await owner.connect();
  const stages = chain(['read', 'answer']);
  await owner.query(`
    create table public.tickets (
      id bigint generated always as identity primary key, owner uuid not null default auth.uid(), title text);
    alter table public.tickets enable row level security;
    grant select on public.tickets to authenticated;
    grant select, insert, update, delete on public.tickets to service_role;
    create policy own on public.tickets to authenticated using (owner = (select auth.uid()));
    select millrace.add_columns('public.tickets', 'read', 'answer');
    grant insert (title), update (read_status) on public.tickets to authenticated`);
  const entity = { table: 'public.tickets', key: 'id', projection: 'columns', startable_by: ['authenticated'] };
  await owner.query('select millrace.define($1)', [compiled({ pipeline: 'tickets', entity, stages })]);
  const service = new pg.Client({ connectionString: stack.dbUrl });
  await service.connect();
  const clients: SupabaseClient[] = [];
  return {
    stack,
    owner,
    async add(user, title) {
      const insert = 'insert into public.tickets (owner, title) values ($1, $2) returning id';
      const { rows } = await owner.query(insert, [user, title]);
      return rows[0].id;
    },
    async queue(key) {
      await owner.query(`update public.tickets set read_status = 'queued' where id = $1`, [key]);
    },
    async work(stage) {
      const worker = Worker.over(service, stage, 'tickets', randomUUID());
      const items = await worker.take(100);
      await worker.complete(items.map((item) => completed(item)));
      await worker.leave();
    },
    async signIn(user, token, { apiUrl = stack.apiUrl } = {}) {
      const kept = await stack.signUserToken({ sub: user });
      const client = createClient(apiUrl, stack.publishableKey, {
        accessToken: token ?? (async () => kept),
        realtime: { transport: WebSocket as never },
      });
      clients.push(client);
      return client;
    },
    async stop() {
      await Promise.all(clients.map((client) => client.removeAllChannels()));
      await Promise.all([owner.end(), service.end()]);
      await stack.stop();
    },
  };
}
