import { expect, test, vi } from 'vitest';
import { createWaker } from '../../supabase/functions/_millrace/worker/wake.ts';
import { refusedUrl, startServer } from '../support/http-server.ts';
import { keepLog } from '../support/runtime/make-drain.ts';

const next = { pipeline: 'leads', stage: 'intel', function: 'leads-intel' };

function makeWaker(url: string, wakeSecret?: string) {
  const wake = vi.fn(async () => ({ woken: 1 }));
  const log = keepLog();
  const platform = { url, secretKey: 'sb_secret_x', secretKeys: {}, wakeSecret };
  return { wake, log, waker: createWaker({ platform, engine: { wake }, log }) };
}

test('a wake-up carries the wake-up secret, and the secret key only where there is none', async () => {
  const server = await startServer(() => ({ status: 202 }));
  const withSecret = makeWaker(server.url, 'wake');
  withSecret.waker.wake([next]);
  await withSecret.waker.settled();
  expect(server.received[0]?.headers['x-millrace-wake-secret']).toBe('wake');
  expect(JSON.stringify(server.received[0])).not.toContain('sb_secret_x');
  const without = makeWaker(server.url);
  without.waker.wake([next]);
  await without.waker.settled();
  expect(server.received[1]?.headers.apikey).toBe('sb_secret_x');
});

test('a wake names the stage, and nothing else', async () => {
  const server = await startServer(() => ({ status: 202 }));
  const { wake, waker } = makeWaker(server.url);
  waker.wake([next]);
  await waker.settled();
  expect(server.received).toHaveLength(1);
  expect(server.received[0]).toMatchObject({ method: 'POST', path: '/functions/v1/leads-intel' });
  expect(JSON.parse(server.received[0]?.body ?? '')).toEqual({ pipeline: 'leads', stage: 'intel' });
  expect(wake).not.toHaveBeenCalled();
});

test('a function that cannot be woken is left to the database', async () => {
  const { wake, waker } = makeWaker(await refusedUrl());
  waker.wake([next]);
  await waker.settled();
  expect(wake).toHaveBeenCalledWith([{ pipeline: 'leads', stage: 'intel' }]);
});

test('a wake-up that is refused is left to the database too', async () => {
  const server = await startServer(() => ({ status: 503 }));
  const { wake, waker } = makeWaker(server.url);
  waker.wake([next]);
  await waker.settled();
  expect(wake).toHaveBeenCalledTimes(1);
});

test('a failure of both is logged, never thrown', async () => {
  const { wake, waker, log } = makeWaker(await refusedUrl());
  wake.mockRejectedValue(new Error('down'));
  waker.wake([next]);
  await waker.settled();
  expect(log.lines.join()).toContain('its sweep will');
});
