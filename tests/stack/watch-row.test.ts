// @millrace/client over a whole stack: live by Realtime, complete without it.
import { randomUUID } from 'node:crypto';
import { createClient } from '@supabase/supabase-js';
import { WebSocket } from 'undici';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type Progress, ProgressError, type RowWatch, watchRow } from '../../packages/client/index.ts';
import { startTickets, type Tickets } from '../support/stack/watching.ts';

let tickets: Tickets;
beforeAll(async () => {
  tickets = await startTickets();
});
afterAll(() => tickets?.stop());

interface Watched {
  seen: Progress[];
  errors: ProgressError[];
  stop(): void;
}

/** Subscribes to a row until the test is over. */
function follow(row: RowWatch): Watched {
  const seen: Progress[] = [];
  const errors: ProgressError[] = [];
  const stop = row.subscribe(
    (progress) => seen.push(progress),
    (error) => errors.push(error),
  );
  onTestFinished(stop);
  return { seen, errors, stop };
}

const states = ({ seen }: Watched) =>
  Object.fromEntries(Object.entries(seen.at(-1)?.stages ?? {}).map(([name, { state }]) => [name, state]));
const soon = { timeout: 30_000, interval: 20 };

/** Resolves once the client of this row is joined to its topic. */
const joined = (client: { getChannels(): { state: string }[] }) =>
  expect.poll(() => client.getChannels().map(({ state }) => state), soon).toEqual(['joined']);

test('a page sees each stage of its row, by one channel for all rows, until it leaves', async () => {
  const user = randomUUID();
  const client = await tickets.signIn(user);
  const [one, two] = [await tickets.add(user), await tickets.add(user)];
  const first = follow(watchRow(client, { pipeline: 'tickets', key: one }));
  const second = follow(watchRow(client, { pipeline: 'tickets', key: two }));
  await expect.poll(() => states(first), soon).toEqual({ read: 'pending', answer: 'pending' });
  await joined(client);
  await tickets.queue(one);
  await expect.poll(() => states(first), soon).toEqual({ read: 'queued', answer: 'pending' });
  await tickets.work('read');
  await expect.poll(() => states(first), soon).toEqual({ read: 'completed', answer: 'queued' });
  await tickets.work('answer');
  await expect.poll(() => first.seen.at(-1), soon).toMatchObject({ done: true, run: { status: 'completed' } });
  expect(states(second)).toEqual({ read: 'pending', answer: 'pending' });
  first.stop();
  second.stop();
  await expect.poll(() => client.getChannels(), soon).toEqual([]);
});

test('an iteration yields the latest state, and ends by break or by its signal', async () => {
  const user = randomUUID();
  const client = await tickets.signIn(user);
  const key = await tickets.add(user);
  await tickets.queue(key);
  await tickets.work('read');
  for await (const { stages, done } of watchRow(client, { pipeline: 'tickets', key })) {
    expect(Object.keys(stages)).toEqual(['read', 'answer']);
    if (done) break;
    await tickets.work('answer');
  }
  const leaving = new AbortController();
  const yields: Progress[] = [];
  for await (const progress of watchRow(client, { pipeline: 'tickets', key, signal: leaving.signal })) {
    yields.push(progress);
    setTimeout(() => leaving.abort(), 0);
  }
  expect(yields).toHaveLength(1);
});

test('another’s row is refused like one that there is not, and the rows beside it are watched on', async () => {
  const user = randomUUID();
  const client = await tickets.signIn(user);
  const own = follow(watchRow(client, { pipeline: 'tickets', key: await tickets.add(user) }));
  const foreign = follow(watchRow(client, { pipeline: 'tickets', key: await tickets.add(randomUUID()) }));
  const missing = follow(watchRow(client, { pipeline: 'tickets', key: 999_999 }));
  const malformed = follow(watchRow(client, { pipeline: 'tickets', key: 'seven' }));
  const unknown = follow(watchRow(client, { pipeline: 'other', key: 1 }));
  await expect
    .poll(() => [foreign, missing, malformed, unknown].map(({ errors }) => errors[0]?.code), soon)
    .toEqual(['not_found', 'not_found', '22P02', 'MR003']);
  expect(foreign.seen).toEqual([]);
  await expect.poll(() => states(own), soon).toEqual({ read: 'pending', answer: 'pending' });
  const [iteration] = await Promise.allSettled([
    (async () => {
      for await (const _ of watchRow(client, { pipeline: 'tickets', key: 999_999 }));
    })(),
  ]);
  expect(iteration).toMatchObject({ status: 'rejected', reason: expect.any(ProgressError) });
});

test('a page without a token is refused a table that it may not select', async () => {
  const { apiUrl, publishableKey } = tickets.stack;
  const client = createClient(apiUrl, publishableKey, { realtime: { transport: WebSocket as never } });
  const { errors } = follow(watchRow(client, { pipeline: 'tickets', key: await tickets.add(randomUUID()) }));
  await expect.poll(() => errors[0]?.code, { timeout: 5000, interval: 20 }).toBe('42501');
});

/** A client of no user yet, the id of a user, and what signs this one in. */
async function visitor(fetch = globalThis.fetch) {
  const { apiUrl, publishableKey, secretKey } = tickets.stack;
  const account = { email: `${randomUUID()}@example.com`, password: randomUUID() };
  const made = await globalThis.fetch(`${apiUrl}/auth/v1/admin/users`, {
    method: 'POST',
    headers: { apikey: secretKey, 'content-type': 'application/json' },
    body: JSON.stringify({ ...account, email_confirm: true }),
  });
  const { id } = (await made.json()) as { id: string };
  const client = createClient(apiUrl, publishableKey, {
    auth: { persistSession: false, autoRefreshToken: false },
    global: { fetch },
    realtime: { transport: WebSocket as never },
  });
  onTestFinished(async () => {
    await client.removeAllChannels();
  });
  return { client, user: id, signIn: () => client.auth.signInWithPassword(account) };
}

test('a row that a visitor may not see is there once the visitor signs in', async () => {
  const { client, user, signIn } = await visitor();
  const row = follow(watchRow(client, { pipeline: 'tickets', key: await tickets.add(user) }));
  const foreign = follow(watchRow(client, { pipeline: 'tickets', key: await tickets.add(randomUUID()) }));
  await expect.poll(() => [row, foreign].map(({ errors }) => errors[0]?.code), soon).toEqual(['42501', '42501']);
  await signIn();
  await expect.poll(() => states(row), soon).toEqual({ read: 'pending', answer: 'pending' });
  await expect.poll(() => foreign.errors.map(({ code }) => code), soon).toEqual(['42501', 'not_found']);
  await joined(client);
});

test('an answer from before a sign-in is no error after it', async () => {
  let isFirst = true;
  const { client, user, signIn } = await visitor(async (...request) => {
    const answer = await fetch(...request);
    if (isFirst && String(request[0]).includes('millrace_progress')) {
      isFirst = false;
      await signIn();
    }
    return answer;
  });
  const row = follow(watchRow(client, { pipeline: 'tickets', key: await tickets.add(user) }));
  await expect.poll(() => states(row), soon).toEqual({ read: 'pending', answer: 'pending' });
  expect(isFirst).toBe(false);
  expect(row.errors).toEqual([]);
});

test('a listener that throws ends no other watch', async () => {
  const thrown: unknown[] = [];
  const onThrown = (error: unknown) => thrown.push(error);
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection').on('unhandledRejection', onThrown);
  onTestFinished(() => {
    process.off('unhandledRejection', onThrown);
    for (const other of others) process.on('unhandledRejection', other);
  });
  const user = randomUUID();
  const client = await tickets.signIn(user);
  const [one, two] = [await tickets.add(user), await tickets.add(user)];
  const broken = new Error('the page is broken');
  const stop = watchRow(client, { pipeline: 'tickets', key: one }).subscribe(() => {
    throw broken;
  });
  onTestFinished(stop);
  const other = follow(watchRow(client, { pipeline: 'tickets', key: two }));
  await expect
    .poll(() => states(other), { timeout: 5000, interval: 20 })
    .toEqual({ read: 'pending', answer: 'pending' });
  expect(thrown).toContain(broken);
});

test('nobody joins the topic of another user', async () => {
  const [user, other] = [randomUUID(), randomUUID()];
  const client = await tickets.signIn(user);
  follow(watchRow(client, { pipeline: 'tickets', key: await tickets.add(user) }));
  await joined(client);
  const topic = String(client.getChannels()[0]?.topic.replace('realtime:', ''));
  expect(topic).toMatch(new RegExp(`^millrace:${user}:`));
  const stranger = await tickets.signIn(other);
  await stranger.realtime.setAuth();
  const status = await new Promise((resolve) => {
    stranger.channel(topic, { config: { private: true } }).subscribe(resolve);
  });
  expect(status).toBe('CHANNEL_ERROR');
});

test('a message that is lost is made good', async () => {
  const user = randomUUID();
  const client = await tickets.signIn(user);
  const key = await tickets.add(user);
  const row = follow(watchRow(client, { pipeline: 'tickets', key }));
  await joined(client);
  // As if Realtime lost it: nobody watches while the row changes.
  await tickets.owner.query('delete from millrace.watches');
  await tickets.queue(key);
  await expect.poll(() => states(row), soon).toEqual({ read: 'queued', answer: 'pending' });
});

test('without Realtime a page polls by itself', async () => {
  const user = randomUUID();
  const client = await tickets.signIn(user);
  client.realtime.setAuth = () => Promise.reject(new Error('no Realtime'));
  const key = await tickets.add(user);
  const row = follow(watchRow(client, { pipeline: 'tickets', key }));
  await expect.poll(() => row.seen.length, soon).toBe(1);
  await tickets.queue(key);
  await expect.poll(() => states(row), soon).toEqual({ read: 'queued', answer: 'pending' });
});

/** Lets a page sleep: from now on its timers stand still, but for those that are due at once. */
function stopTimers(): void {
  const { setTimeout } = globalThis;
  onTestFinished(() => {
    globalThis.setTimeout = setTimeout;
  });
  globalThis.setTimeout = ((run: () => void, ms = 0) => setTimeout(ms < 200 ? run : () => {}, ms)) as typeof setTimeout;
}

test.for([
  ['is visible again', 'document', 'visibilitychange'],
  ['is online again', 'window', 'online'],
] as const)('a tab that slept catches up at once when it %s', async ([, target, event], { onTestFinished }) => {
  const user = randomUUID();
  const client = await tickets.signIn(user);
  // No message comes either.
  client.realtime.setAuth = () => new Promise(() => {});
  const key = await tickets.add(user);
  const page = new EventTarget();
  Object.assign(globalThis, { [target]: page });
  onTestFinished(() => {
    Reflect.deleteProperty(globalThis, target);
  });
  stopTimers();
  const row = follow(watchRow(client, { pipeline: 'tickets', key }));
  await expect.poll(() => row.seen.length, soon).toBe(1);
  await tickets.queue(key);
  page.dispatchEvent(new Event(event));
  await expect.poll(() => states(row), soon).toEqual({ read: 'queued', answer: 'pending' });
});

test('a client watches 500 rows, and is refused one more until it leaves another', async () => {
  const user = randomUUID();
  const client = await tickets.signIn(user);
  const { rows: added } = await tickets.owner.query<{ id: string }>(
    'insert into public.tickets (owner) select $1 from generate_series(1, 501) returning id',
    [user],
  );
  const [first, ...others] = added.map(({ id }) => watchRow(client, { pipeline: 'tickets', key: id }));
  const watched = others.map(follow);
  const tooMany = expect.objectContaining({
    code: 'too_many_rows',
    message: 'A client watches at most 500 rows: watch those that a person sees.',
  });
  expect(() => first?.subscribe(() => {})).toThrow(tooMany);
  await expect(first?.[Symbol.asyncIterator]().next()).rejects.toEqual(tooMany);
  await expect.poll(() => watched.filter(({ seen }) => seen.length > 0), soon).toHaveLength(500);
  watched[0]?.stop();
  const last = follow(first as RowWatch);
  await expect.poll(() => states(last), soon).toEqual({ read: 'pending', answer: 'pending' });
});

test('a connection that breaks comes back, and nothing that changed meanwhile is missed', async () => {
  const user = randomUUID();
  const client = await tickets.signIn(user);
  const key = await tickets.add(user);
  const row = follow(watchRow(client, { pipeline: 'tickets', key }));
  await joined(client);
  await client.realtime.disconnect();
  await tickets.queue(key);
  await tickets.work('read');
  await expect.poll(() => states(row), soon).toEqual({ read: 'completed', answer: 'queued' });
  await joined(client);
});

test('a token that expires is replaced by the next, without a word to the page', async () => {
  const user = randomUUID();
  const token = () => tickets.stack.signUserToken({ sub: user, exp: Math.floor(Date.now() / 1000) + 2 });
  let kept = await token();
  const client = await tickets.signIn(user, async () => kept);
  const key = await tickets.add(user);
  const row = follow(watchRow(client, { pipeline: 'tickets', key }));
  await joined(client);
  // The channel is closed, and calls are refused, until there is a new token.
  await expect.poll(() => client.getChannels(), soon).toEqual([]);
  kept = await token();
  await tickets.queue(key);
  await expect.poll(() => states(row), soon).toEqual({ read: 'queued', answer: 'pending' });
  expect(row.errors).toEqual([]);
});

test('a user starts a row by an insert only where the status is granted for it', async () => {
  const client = await tickets.signIn(randomUUID());
  const insert = () => client.from('tickets').insert({ title: 'No light', read_status: 'queued' });
  expect((await insert()).error?.message).toBe('permission denied for table tickets');
  await tickets.owner.query('grant insert (title, read_status) on public.tickets to authenticated');
  expect((await insert()).error).toBeNull();
  const { data } = await client.from('tickets').select('id').single();
  const row = follow(watchRow(client, { pipeline: 'tickets', key: data?.id }));
  await expect.poll(() => states(row), soon).toMatchObject({ read: 'queued' });
});

test('a visitor sees live the rows that anon may select', async () => {
  await tickets.owner.query(`grant select on public.tickets to anon;
    create policy open on public.tickets for select to anon using (title = 'open')`);
  const { client } = await visitor();
  const key = await tickets.add(randomUUID(), 'open');
  const row = follow(watchRow(client, { pipeline: 'tickets', key }));
  await joined(client);
  await tickets.queue(key);
  await expect.poll(() => states(row), soon).toMatchObject({ read: 'queued' });
});
