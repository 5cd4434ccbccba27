import { describe, expect, test, vi } from 'vitest';
import {
  createEngine,
  EngineRefusal,
  EngineUnavailable,
  type RpcAnswer,
} from '../../supabase/functions/_millrace/engine/engine-client.ts';
import { failedAnswer } from '../support/runtime/fake-engine.ts';
import { keepLog } from '../support/runtime/make-drain.ts';

function engineThatAnswers(answers: (RpcAnswer | Error)[], retryForMs = 5_000) {
  const rpc = vi.fn(async (_name: string, _args: Record<string, unknown>): Promise<RpcAnswer> => {
    const next = answers.length > 1 ? answers.shift() : answers[0];
    if (next instanceof Error) throw next;
    return next as RpcAnswer;
  });
  const until = Date.now() + retryForMs;
  return { rpc, engine: createEngine({ rpc, retryUntil: () => until, log: keepLog() }) };
}
const ok = (data: unknown): RpcAnswer => ({ data, error: null, status: 200 });

test('a call without an answer, or answered 5xx, is repeated unchanged', async () => {
  const { rpc, engine } = engineThatAnswers([
    failedAnswer(503),
    failedAnswer(0, 'connection reset'),
    new Error('socket closed'),
    { data: null, error: { message: '', code: '' }, status: 400 }, // PostgREST's answer when Postgres is killed
    ok({ left: true, wake: [] }),
  ]);
  expect(await engine.leave('w', false)).toEqual({ left: true, wake: [] });
  expect(rpc).toHaveBeenCalledTimes(5);
  for (const call of rpc.mock.calls) {
    expect(call.slice(0, 2)).toEqual(['millrace_leave', { p_worker: 'w', p_hand_over: false }]);
  }
});

test('a call the engine refuses is not repeated, and its hint is passed on', async () => {
  const said = { message: 'there is no stage x', code: 'MR003', hint: 'Known: a.b.' };
  const refusal = { data: null, error: said, status: 400 };
  const { rpc, engine } = engineThatAnswers([refusal]);
  const error = await engine.poll(5).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(EngineRefusal);
  expect(error).toMatchObject({ code: 'MR003' });
  expect((error as Error).message).toMatch(/millrace_poll: 400 there is no stage x — Known: a\.b\./);
  expect(rpc).toHaveBeenCalledTimes(1);
});

test('after the time to retry the engine counts as unavailable', async () => {
  const { engine } = engineThatAnswers([failedAnswer(503)], 100);
  await expect(engine.wake([])).rejects.toBeInstanceOf(EngineUnavailable);
});

test('a renewal and a collection are tried once: a timer and the sweep repeat them', async () => {
  const { rpc, engine } = engineThatAnswers([failedAnswer(503)]);
  await expect(engine.renew('w', [])).rejects.toBeInstanceOf(EngineUnavailable);
  await expect(engine.collectChildren([1])).rejects.toBeInstanceOf(EngineUnavailable);
  expect(rpc).toHaveBeenCalledTimes(2);
});

test('an answer of another form is refused with the place named', async () => {
  const { engine } = engineThatAnswers([ok({ left: 'yes', wake: [] })]);
  await expect(engine.leave('w', true)).rejects.toThrow(/millrace_leave .* at left: .* same version/);
});

test('the interval between polls is sent only where it is set', async () => {
  const { rpc, engine } = engineThatAnswers([ok({ jobs: [], more: false })]);
  await engine.poll(5);
  await engine.poll(5, 1_500);
  expect(rpc.mock.calls.map((call) => call[1])).toEqual([{ p_limit: 5 }, { p_limit: 5, p_poll_ms: 1_500 }]);
});

describe('an answer that says that the sweep is late', () => {
  const late = { items: [], wake: [], sweep_due: true };

  test('has it called once at a time, and holds up nobody', async () => {
    let endSweep = (_: RpcAnswer) => {};
    const sweeping = new Promise<RpcAnswer>((resolve) => {
      endSweep = resolve;
    });
    const rpc = vi.fn(async (name: string) => (name === 'millrace_sweep' ? sweeping : ok(late)));
    const engine = createEngine({ rpc, retryUntil: () => Date.now() + 5_000, log: keepLog() });
    await engine.resume([]);
    await engine.resume([]);
    const sweeps = () => rpc.mock.calls.filter(([name]) => name === 'millrace_sweep').length;
    expect(sweeps()).toBe(1);
    endSweep(ok({ swept: true }));
    await vi.waitFor(async () => {
      await engine.resume([]);
      expect(sweeps()).toBe(2);
    });
  });

  test('fails no call when the sweep fails, which is told', async () => {
    const log = keepLog();
    const rpc = async (name: string) => (name === 'millrace_sweep' ? failedAnswer(503) : ok(late));
    const engine = createEngine({ rpc, retryUntil: () => Date.now() + 5_000, log });
    await engine.resume([]);
    await vi.waitFor(() => expect(log.lines.join()).toContain('the sweep is late'));
  });

  test('on time has nothing called', async () => {
    const { rpc, engine } = engineThatAnswers([ok({ ...late, sweep_due: false })]);
    await engine.resume([]);
    expect(rpc).toHaveBeenCalledTimes(1);
  });
});

test('a call that an upgrade of the engine overtakes is repeated for a while, and then refused', async () => {
  const reloading = {
    data: null,
    error: { message: 'Could not find the function', code: 'PGRST202' },
    status: 404,
  };
  const { rpc, engine } = engineThatAnswers([reloading, ok({ left: true, wake: [] })]);
  expect(await engine.leave('w', false)).toEqual({ left: true, wake: [] });
  expect(rpc).toHaveBeenCalledTimes(2);
  vi.useFakeTimers();
  try {
    const { engine: never } = engineThatAnswers([reloading], 60_000);
    const refused = expect(never.leave('w', false)).rejects.toBeInstanceOf(EngineRefusal);
    await vi.advanceTimersByTimeAsync(10_000);
    await refused;
  } finally {
    vi.useRealTimers();
  }
});
