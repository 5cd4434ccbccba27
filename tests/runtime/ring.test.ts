import { expect, test, vi } from 'vitest';
import { createRinger } from '../../supabase/functions/_millrace/worker/ring.ts';
import { refusedUrl, startServer } from '../support/http-server.ts';
import { keepLog } from '../support/make-drain.ts';

const next = { pipeline: 'leads', stage: 'intel', function: 'leads-intel' };

function makeRinger(url: string, ringSecret?: string) {
  const ring = vi.fn(async () => ({ rung: 1 }));
  const log = keepLog();
  const platform = { url, secretKey: 'sb_secret_x', secretKeys: {}, ringSecret };
  return { ring, log, ringer: createRinger({ platform, engine: { ring }, log }) };
}

test('a ring carries the ring secret, and the secret key only where there is none', async () => {
  const server = await startServer(() => ({ status: 202 }));
  const withSecret = makeRinger(server.url, 'ring');
  withSecret.ringer.ring([next]);
  await withSecret.ringer.settled();
  expect(server.received[0]?.headers['x-millrace-ring-secret']).toBe('ring');
  expect(JSON.stringify(server.received[0])).not.toContain('sb_secret_x');
  const without = makeRinger(server.url);
  without.ringer.ring([next]);
  await without.ringer.settled();
  expect(server.received[1]?.headers.apikey).toBe('sb_secret_x');
});

test('a ring names the stage, and nothing else', async () => {
  const server = await startServer(() => ({ status: 202 }));
  const { ring, ringer } = makeRinger(server.url);
  ringer.ring([next]);
  await ringer.settled();
  expect(server.received).toHaveLength(1);
  expect(server.received[0]).toMatchObject({ method: 'POST', path: '/functions/v1/leads-intel' });
  expect(JSON.parse(server.received[0]?.body ?? '')).toEqual({ pipeline: 'leads', stage: 'intel' });
  expect(ring).not.toHaveBeenCalled();
});

test('what cannot be rung is left to the database', async () => {
  const { ring, ringer } = makeRinger(await refusedUrl());
  ringer.ring([next]);
  await ringer.settled();
  expect(ring).toHaveBeenCalledWith([{ pipeline: 'leads', stage: 'intel' }]);
});

test('a ring that is refused is left to the database too', async () => {
  const server = await startServer(() => ({ status: 503 }));
  const { ring, ringer } = makeRinger(server.url);
  ringer.ring([next]);
  await ringer.settled();
  expect(ring).toHaveBeenCalledTimes(1);
});

test('a failure of both is logged, never thrown', async () => {
  const { ring, ringer, log } = makeRinger(await refusedUrl());
  ring.mockRejectedValue(new Error('down'));
  ringer.ring([next]);
  await ringer.settled();
  expect(log.lines.join()).toContain('its sweep will');
});
