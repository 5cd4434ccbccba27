// Realtime as supabase-js speaks it: private channels by the policies on realtime.messages, messages by realtime.send(). On the
// stand-in, or on the project at MILLRACE_REALTIME_URL, whose `postgres` PGURL names (docs/contributing.md).
import { createClient, type RealtimeChannel, type SupabaseClient } from '@supabase/supabase-js';
import { SignJWT } from 'jose';
import pg from 'pg';
import { WebSocket } from 'undici';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type Stack, startStack } from '../../local/platform/stack.ts';

/** A project with Realtime. */
type Target = Pick<Stack, 'apiUrl' | 'publishableKey' | 'dbUrl' | 'signUserToken' | 'stop'>;

/** Returns the project that the environment names; undefined where it names none. */
function givenTarget(): Target | undefined {
  const { MILLRACE_REALTIME_URL, MILLRACE_REALTIME_KEY, MILLRACE_REALTIME_JWT_SECRET, PGURL } = process.env;
  if (!MILLRACE_REALTIME_URL) return undefined;
  if (!MILLRACE_REALTIME_KEY || !MILLRACE_REALTIME_JWT_SECRET || !PGURL)
    throw new Error(
      'MILLRACE_REALTIME_URL is set: set MILLRACE_REALTIME_KEY, MILLRACE_REALTIME_JWT_SECRET and PGURL, too.',
    );
  const now = Math.floor(Date.now() / 1000);
  return {
    apiUrl: MILLRACE_REALTIME_URL,
    publishableKey: MILLRACE_REALTIME_KEY,
    dbUrl: PGURL,
    signUserToken: (claims) =>
      new SignJWT({ role: 'authenticated', aud: 'authenticated', iat: now, exp: now + 3600, ...claims })
        .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
        .sign(new TextEncoder().encode(MILLRACE_REALTIME_JWT_SECRET)),
    stop: async () => {},
  };
}

let stack: Target;
let owner: pg.Client;
const dropPolicy = 'drop policy if exists millrace_contract_rooms on realtime.messages';

beforeAll(async () => {
  const functionsDir = new URL('functions', import.meta.url).pathname;
  stack = givenTarget() ?? (await startStack({ services: false, migrations: false, functionsDir, fsync: false }));
  owner = new pg.Client({ connectionString: stack.dbUrl });
  await owner.connect();
  await owner.query(`
    ${dropPolicy};
    create policy millrace_contract_rooms on realtime.messages for select to authenticated
      using (realtime.topic() = 'room:' || (current_setting('request.jwt.claims')::jsonb ->> 'sub'))`);
});
afterAll(async () => {
  await owner?.query(dropPolicy);
  await owner?.end();
  await stack?.stop();
});

async function signIn(sub: string, claims: object = {}): Promise<SupabaseClient> {
  const token = await stack.signUserToken({ sub, ...claims });
  const client = createClient(stack.apiUrl, stack.publishableKey, {
    accessToken: async () => token,
    realtime: { transport: WebSocket as never },
  });
  onTestFinished(async () => {
    await client.removeAllChannels();
  });
  return client;
}

interface Joined {
  channel: RealtimeChannel;
  status: string;
  statuses: string[];
  messages: { event: string; payload: Record<string, unknown> }[];
}

/** Joins a channel; resolves to its first status and what it hears. */
async function join(client: SupabaseClient, topic: string, isPrivate = true): Promise<Joined> {
  const messages: Joined['messages'] = [];
  const statuses: string[] = [];
  const channel = client.channel(topic, { config: { private: isPrivate } });
  channel.on('broadcast', { event: '*' }, (message) => messages.push(message as never));
  await client.realtime.setAuth();
  await new Promise<void>((resolve) => {
    channel.subscribe((said) => {
      statuses.push(said);
      resolve();
    });
  });
  return { channel, status: String(statuses[0]), statuses, messages };
}

const send = (topic: string, isPrivate = true) =>
  owner.query(`select realtime.send('{"n": 1}', 'said', $1, $2)`, [topic, isPrivate]);

test('a private channel is open to whom a policy lets in, and hears what the database sends there', async () => {
  const ann = await signIn('ann');
  const own = await join(ann, 'room:ann');
  expect(own.status).toBe('SUBSCRIBED');
  expect((await join(await signIn('bob'), 'room:ann')).status).toBe('CHANNEL_ERROR');
  const open = await join(await signIn('eve'), 'room:ann', false);
  expect(open.status).toBe('SUBSCRIBED');
  await send('room:other');
  await send('room:ann');
  await expect.poll(() => own.messages, { timeout: 20_000 }).toMatchObject([{ event: 'said', payload: { n: 1 } }]);
  expect(own.messages[0]?.payload.id).toMatch(/^[0-9a-f-]{36}$/);
  await send('room:ann', false);
  await expect.poll(() => open.messages, { timeout: 20_000 }).toHaveLength(1);
  expect(own.messages).toHaveLength(1);
});

test('a message of a transaction that is rolled back is never heard', async () => {
  const { messages } = await join(await signIn('ann'), 'room:ann');
  await owner.query('begin');
  await send('room:ann');
  await owner.query('rollback');
  await send('room:ann');
  await expect.poll(() => messages, { timeout: 20_000 }).toHaveLength(1);
});

test.for([
  'create table realtime.own ()',
  `create function realtime.own() returns int language sql as 'select 1'`,
  'create view realtime.own as select 1 as one',
  `create trigger own before insert on realtime.messages for each row execute function tsvector_update_trigger('a')`,
  'alter table realtime.messages add own int',
  'create index own on realtime.messages (event)',
])('the schema realtime takes policies on its messages, and refuses: %s', async (statement) => {
  await expect(owner.query(statement)).rejects.toMatchObject({ code: '42501' });
});

test('a channel whose token expires is closed', async () => {
  let joined: Joined | undefined;
  // On a busy machine a token of two seconds may expire before its client has joined.
  for (let seconds = 2; joined?.status !== 'SUBSCRIBED' && seconds <= 16; seconds *= 2) {
    const exp = Math.floor(Date.now() / 1000) + seconds;
    joined = await join(await signIn('ann', { exp }), 'room:ann');
  }
  await expect.poll(() => joined?.statuses, { timeout: 20_000 }).toContain('CLOSED');
});
