import { expect, test } from 'vitest';
import { createEngine, type RpcAnswer } from '../../supabase/functions/_millrace/engine/engine-client.ts';
import type { NewTurn } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import { LeaseLost } from '../../supabase/functions/_millrace/errors.ts';
import { createCheckpoints } from '../../supabase/functions/_millrace/stage/agent-checkpoints.ts';
import { makeItem } from '../support/runtime/fake-engine.ts';
import { keepLog } from '../support/runtime/make-drain.ts';

const turn: NewTurn = {
  seq: 1,
  kind: 'tool',
  call_id: 'c',
  content: { name: 'look', arguments: '{}', output: 'page', failed: false },
};
const busy = { status: 'busy', reason: 'another transaction has locked it' };
const item = makeItem(7);

/** Checkpoints over an engine that gives these answers one after the other. */
function answered(answers: (object | RpcAnswer)[], signal = new AbortController().signal) {
  const calls: { name: string; args: Record<string, unknown> }[] = [];
  const rpc = async (name: string, args: Record<string, unknown>): Promise<RpcAnswer> => {
    calls.push({ name, args });
    const answer = answers.shift() ?? expect.fail('one call too many');
    return 'error' in answer ? (answer as RpcAnswer) : { data: answer, error: null, status: 200 };
  };
  const engine = createEngine({ rpc, retryUntil: () => Date.now() + 1_000, log: keepLog() });
  return { checkpoints: createCheckpoints({ engine, worker: 'w', item, signal }), calls };
}

test('a turn is sent again unchanged until the engine has taken it', async () => {
  const lost = { data: null, error: { message: 'no answer' }, status: 0 };
  const { checkpoints, calls } = answered([lost, busy, busy, { status: 'duplicate', next_seq: 2 }]);
  await checkpoints.append(turn);
  const args = { p_worker: 'w', p_attempt: 7, p_token: item.token, p_turns: [turn] };
  expect(calls).toEqual(Array.from({ length: 4 }, () => ({ name: 'millrace_checkpoint', args })));
});

test('the wait for a busy row ends when the agent is stopped', async () => {
  const controller = new AbortController();
  const { checkpoints } = answered([busy], controller.signal);
  controller.abort(new Error('stopped'));
  await expect(checkpoints.append(turn)).rejects.toThrow('stopped');
});

test('of an attempt that was taken away both calls tell why', async () => {
  const stale = { status: 'stale', reason: 'the attempt was cancelled' };
  const { checkpoints } = answered([stale, stale]);
  await expect(checkpoints.load()).rejects.toThrow(new LeaseLost('the attempt was cancelled'));
  await expect(checkpoints.append(turn)).rejects.toThrow(new LeaseLost('the attempt was cancelled'));
});

test('an agent without a limit of turns gets one all the same', async () => {
  const { checkpoints } = answered([{ status: 'current', elapsed_ms: 5, limits: { debug: true }, turns: [] }]);
  expect(await checkpoints.load()).toEqual({ turns: [], limits: { max_turns: 50 }, elapsedMs: 5 });
});
