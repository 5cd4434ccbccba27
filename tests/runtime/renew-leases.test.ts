import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { renewLeases } from '../../supabase/functions/_millrace/worker/renew-leases.ts';
import { keepLog } from '../support/runtime/make-drain.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function start(leaseMs: number) {
  const renew = vi.fn(async (_worker: string, _attempts: number[]) => ({ renewed: 1, lost: [] as number[] }));
  const onLost = vi.fn();
  const stop = renewLeases({ engine: { renew }, worker: 'w', leaseMs, log: keepLog(), unfinished: () => [7], onLost });
  return { renew, onLost, stop };
}

test('a lease is renewed three times while it lasts', async () => {
  const { renew, stop } = start(9_000);
  await vi.advanceTimersByTimeAsync(9_000);
  expect(renew).toHaveBeenCalledTimes(3);
  expect(renew).toHaveBeenCalledWith('w', [7]);
  stop();
});

test('a long lease is renewed every 5 s all the same, since the heartbeat lives for 15 s', async () => {
  const { renew, stop } = start(600_000);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(renew).toHaveBeenCalledTimes(3);
  stop();
});

test('nothing is renewed once the worker has ended', async () => {
  const { renew, stop } = start(9_000);
  await vi.advanceTimersByTimeAsync(3_000);
  stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(renew).toHaveBeenCalledTimes(1);
});

test('attempts that were taken away are reported, also after a renewal that failed', async () => {
  const { renew, onLost, stop } = start(9_000);
  renew.mockRejectedValueOnce(new Error('no answer'));
  renew.mockResolvedValueOnce({ renewed: 0, lost: [7] });
  await vi.advanceTimersByTimeAsync(6_000);
  expect(onLost).toHaveBeenCalledWith([7]);
  stop();
});
