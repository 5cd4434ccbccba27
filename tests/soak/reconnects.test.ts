// Clients that lose their connections 1,000 times together miss no change of their rows. RECONNECTS says another number.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type Progress, watchRow } from '../../packages/client/index.ts';
import { startTickets, type Tickets } from '../support/stack/watching.ts';

let tickets: Tickets;
beforeAll(async () => {
  tickets = await startTickets();
});
afterAll(() => tickets?.stop());

const pages = 25;
const rounds = Math.ceil(Number(process.env.RECONNECTS ?? 1000) / pages);
const soon = { timeout: 60_000, interval: 20 };

/** A page of a user's own with one row, which it watches. */
async function openPage() {
  const user = randomUUID();
  const client = await tickets.signIn(user);
  const key = await tickets.add(user);
  const seen: Progress[] = [];
  onTestFinished(watchRow(client, { pipeline: 'tickets', key }).subscribe((progress) => seen.push(progress)));
  return {
    key,
    isJoined: () => client.getChannels().some(({ state }) => state === 'joined'),
    leave: () => client.realtime.disconnect(),
    shows: () => seen.at(-1)?.stages.read?.state,
  };
}

test(`${pages} pages show each change that is made while their connections are lost, ${rounds} times each`, async () => {
  const open = await Promise.all(Array.from({ length: pages }, openPage));
  const missed: string[] = [];
  for (let round = 0; round < rounds; round++) {
    await Promise.all(open.map(({ isJoined }) => expect.poll(isJoined, soon).toBe(true)));
    await Promise.all(open.map(({ leave }) => leave()));
    const wanted = round % 2 ? 'completed' : 'queued';
    if (round % 2) await tickets.work('read');
    else await Promise.all(open.map(({ key }) => tickets.queue(key)));
    await Promise.all(
      open.map(({ key, shows }) =>
        expect
          .poll(shows, soon)
          .toBe(wanted)
          .catch(() => missed.push(`round ${round}, row ${key}: ${wanted}`)),
      ),
    );
  }
  expect(missed).toEqual([]);
});
