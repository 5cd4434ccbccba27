import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { startModel } from '../../local/services/model/server.ts';
import { keepCheckpoints } from '../../packages/test/kept-turns.ts';
import { defineTool, type ToolContext } from '../../supabase/functions/_millrace/agents/agent-tools.ts';
import { classify, LeaseLost, MisconfiguredError, PermanentError } from '../../supabase/functions/_millrace/errors.ts';
import { HandedBack } from '../../supabase/functions/_millrace/stage/stage.ts';
import { makeContext } from '../support/context.ts';
import { answering, calling, lookTool, makeAgent, runAgent, scriptedModel } from '../support/runtime/agent-model.ts';

async function failureOf(promise: Promise<unknown>) {
  return classify(
    await promise.then(
      () => expect.fail('no error was thrown'),
      (error: unknown) => error,
    ),
  );
}

describe('a conversation', () => {
  test('goes on with the outputs of the tools until the model answers', async () => {
    const { asked, received, env } = await scriptedModel(
      calling(['look', { page: 3 }]),
      calling(['look', { page: 4 }], ['look', { page: 5 }]),
      answering({ done: 5 }),
    );
    const { tool, looked } = lookTool((page) => ({ page, text: 'contents' }));
    const { outcome, kept } = runAgent(env, [tool]);
    expect(await outcome).toEqual({ done: 5 });
    expect(looked).toEqual([3, 4, 5]);
    const [first, second, third] = asked();
    expect(first).toMatchObject({
      instructions: 'Find it.',
      input: [{ role: 'user', content: 'Find 7.' }],
      store: false,
      tools: [{ type: 'function', name: 'look', strict: true, parameters: { required: ['page'] } }],
      text: { format: { type: 'json_schema', strict: true, schema: { required: ['done'] } } },
    });
    const call = second.input[1];
    expect(call).toEqual({ type: 'function_call', call_id: expect.any(String), name: 'look', arguments: '{"page":3}' });
    expect(second.input[2]).toEqual({
      type: 'function_call_output',
      call_id: call.call_id,
      output: '{"page":3,"text":"contents"}',
    });
    expect(third.input.map((item: { type: string }) => item.type ?? 'message')).toEqual([
      'message',
      'function_call',
      'function_call_output',
      'function_call',
      'function_call',
      'function_call_output',
      'function_call_output',
    ]);
    expect(kept.turns.map((turn) => turn.kind)).toEqual(['model', 'tool', 'model', 'tool', 'tool', 'model']);
    expect(new Set(received.map((request) => request.headers['idempotency-key'])).size).toBe(3);
  });

  test('each tool’s output is recorded before the next tool is run', async () => {
    const { env } = await scriptedModel(calling(['look', { page: 1 }], ['look', { page: 2 }]), answering({ done: 1 }));
    const order: string[] = [];
    const { tool } = lookTool((page) => order.push(`look ${page}`));
    const kept = keepCheckpoints({ before: (turn) => order.push(`record ${turn.seq}`) });
    await runAgent(env, [tool], { kept }).outcome;
    expect(order).toEqual(['record 1', 'look 1', 'record 2', 'look 2', 'record 3', 'record 4']);
  });

  test('keeps its first message when it is resumed, whatever the entity’s row says by then', async () => {
    const { asked, env } = await scriptedModel(calling(['look', { page: 1 }]), { status: 500 }, answering({ done: 1 }));
    const { tool } = lookTool();
    const { kept, outcome } = runAgent(env, [tool], { id: 7 });
    expect(await failureOf(outcome)).toMatchObject({ code: 'server_error' });
    expect(await runAgent(env, [tool], { id: 8, kept }).outcome).toEqual({ done: 1 });
    expect(asked()[2]).toEqual(asked()[1]);
  });

  test('stays clear where a service gives the same id to two calls', async () => {
    const repeated = () => {
      const reply = calling(['look', { page: 1 }]);
      Object.assign((reply.json as { output: { call_id: string }[] }).output[0] ?? {}, { call_id: 'call_0' });
      return reply;
    };
    const { env } = await scriptedModel(repeated(), repeated(), answering({ done: 1 }));
    const { tool, looked } = lookTool();
    expect(await runAgent(env, [tool]).outcome).toEqual({ done: 1 });
    expect(looked).toEqual([1, 1]);
  });

  test('works with a model that picks among the tools by itself', async () => {
    const service = await startModel({ env: {} });
    const tide = defineTool({
      name: 'get_tide_times',
      description: 'The times of high and low tide at a harbour',
      parameters: z.object({ harbour: z.string() }),
      run: ({ harbour }) => `High tide at ${harbour} is at 14:20, low tide at 20:41. 9 boats are in.`,
    });
    try {
      const { outcome, kept } = runAgent({ LLM_URL: service.url, LLM_MODEL: 'any' }, [tide], {
        context: { pipeline: 'test' },
      });
      expect(await outcome).toEqual({ done: expect.any(Number) });
      expect(kept.turns.length).toBeGreaterThan(0);
    } finally {
      await service.stop();
    }
  });
});

describe('what a tool does wrong is told to the model, and recorded', () => {
  const { tool, looked } = lookTool((page) => {
    if (page === 404) throw new PermanentError('not_found', 'There is no page 404.');
    if (page === 500) return 'x'.repeat(100_001);
    if (page === 600) return { recursive: 1n };
    return 'never';
  });
  test.each([
    ['an error', 'look', { page: 404 }, /^There is no page 404\.$/],
    ['an output that is too long', 'look', { page: 500 }, /100001 characters, and at most 100000/],
    ['an output that is no JSON', 'look', { page: 600 }, /BigInt/],
    ['a tool that there is not', 'open', { page: 1 }, /^There is no tool open: the tools are look\.$/],
    ['arguments that do not fit', 'look', { page: 'one' }, /arguments\.page: .*\(found: string of 3 characters\)/],
    ['arguments that Postgres could not keep', 'look', '{"page":1,"note":"\\u0000"}', /arguments\.note holds a NUL/],
    ['arguments that are no JSON', 'look', '{"page":', /^The arguments do not fit: arguments: .*found: string/],
  ])('%s', async (_, name, args, message) => {
    const { asked, env } = await scriptedModel(calling([name, args]), answering({ done: 1 }));
    looked.length = 0;
    const { outcome, kept } = runAgent(env, [tool]);
    expect(await outcome).toEqual({ done: 1 });
    const told = asked()[1].input.at(-1);
    expect(told.type).toBe('function_call_output');
    expect(JSON.parse(told.output)).toEqual({ error: expect.stringMatching(message) });
    expect(kept.turns[1]).toMatchObject({ kind: 'tool', content: { name, failed: true, output: told.output } });
  });

  test('but a wrong setting, which no model can correct, fails the attempt to be tried again', async () => {
    const { env } = await scriptedModel(calling(['look', { page: 1 }]));
    const { tool } = lookTool(() => {
      throw new MisconfiguredError('LIBRARY_URL is not set.');
    });
    const { outcome, kept } = runAgent(env, [tool]);
    expect(await failureOf(outcome)).toMatchObject({ code: 'misconfigured', permanent: false });
    expect(kept.turns).toHaveLength(1);
  });
});

test('a first message that could not be recorded is refused before it costs anything', async () => {
  const { received, env } = await scriptedModel(answering({ done: 1 }));
  const { context } = makeContext(env);
  const agent = makeAgent([], 'x'.repeat(100_001));
  const failure = await failureOf(Promise.resolve(agent.handler({ entity: { id: 7 } }, context)));
  expect(failure).toMatchObject({ code: 'message_too_large', permanent: true });
  expect(failure.message).toContain('100001 characters');
  expect(received).toHaveLength(0);
});

test('text that Postgres cannot store is replaced before it is recorded', async () => {
  const { env } = await scriptedModel(calling(['look', '{"page":1,"note":"a\u0000b\ud800"}']), answering({ done: 1 }));
  const { tool } = lookTool(() => 'c\u0000d');
  const { kept, outcome } = runAgent(env, [tool]);
  await outcome;
  expect(JSON.stringify(kept.turns)).not.toMatch(/\\u0000|\\ud800/);
  expect(kept.turns[1]).toMatchObject({ content: { output: 'c\ufffdd' } });
});

describe('an answer that does not fit', () => {
  test('is sent back with its fault', async () => {
    const { asked, env } = await scriptedModel(
      answering({ done: 'soon' }),
      answering('no json'),
      answering({ done: 2 }),
    );
    const { outcome, kept } = runAgent(env, []);
    expect(await outcome).toEqual({ done: 2 });
    expect(asked()[2].input).toEqual([
      { role: 'user', content: 'Find 7.' },
      { role: 'assistant', content: '{"done":"soon"}' },
      { role: 'user', content: expect.stringMatching(/answer\.done: .*found: string of 4 characters/) },
      { role: 'assistant', content: 'no json' },
      { role: 'user', content: expect.stringMatching(/answer: .*found: string of 7 characters/) },
    ]);
    expect(kept.turns).toHaveLength(3);
  });

  test('is sent back where Postgres could not keep it', async () => {
    const { asked, env } = await scriptedModel(answering('{"done":1,"note":"\\u0000"}'), answering({ done: 2 }));
    expect(await runAgent(env, []).outcome).toEqual({ done: 2 });
    expect(asked()[1].input.at(-1).content).toContain('answer.note holds a NUL character');
  });

  test('ends it at the third in a row, for good', async () => {
    const bad = answering({ done: 'soon' });
    const { received, env } = await scriptedModel(bad, bad, bad, answering({ done: 1 }));
    const { outcome } = runAgent(env, []);
    expect(await failureOf(outcome)).toMatchObject({ code: 'invalid_output', permanent: true });
    expect(received).toHaveLength(3);
  });

  test('counts in a row only: a call of a tool in between is progress', async () => {
    const bad = answering({ done: 'soon' });
    const { env } = await scriptedModel(bad, bad, calling(['look', { page: 1 }]), bad, answering({ done: 1 }));
    expect(await runAgent(env, [lookTool().tool]).outcome).toEqual({ done: 1 });
  });

  test('a refusal is permanent', async () => {
    const output = [{ type: 'message', id: 'm', role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }];
    const { env } = await scriptedModel(answering('', { output }));
    expect(await failureOf(runAgent(env, []).outcome)).toMatchObject({ code: 'model_refused', permanent: true });
  });

  test('an answer that was cut off was paid for, and is no part of the conversation', async () => {
    const cut = answering('{"don', { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
    const { asked, env } = await scriptedModel(cut, answering({ done: 1 }));
    const first = runAgent(env, []);
    expect(await failureOf(first.outcome)).toMatchObject({ code: 'incomplete_output', permanent: false });
    expect(first.usages.at(-1)).toMatchObject({ turns: 1, input_tokens: 1_000, call: 'chat' });
    const second = runAgent(env, [], { kept: first.kept });
    expect(await second.outcome).toEqual({ done: 1 });
    expect(asked()[1].input).toEqual([{ role: 'user', content: 'Find 7.' }]);
    expect(second.usages.at(-1)).toMatchObject({ stage_run_turns: 2, stage_run_tokens: 2_200 });
  });
});

describe('limits end an agent for good and say what to do', () => {
  const prices = { LLM_PRICE_INPUT: '1000', LLM_PRICE_OUTPUT: '0' };
  const looking = () => calling(['look', { page: 1 }]);

  test.each([
    [
      'agent_turns_exceeded',
      { max_turns: 2 },
      /limit of 2 turns \(agent\.max_turns\); it used 2 turns: raise agent\.max_turns/,
    ],
    [
      'agent_tokens_exceeded',
      { max_tokens: 2_200 },
      /limit of 2200 tokens \(agent\.max_tokens\); it used 2200 tokens in 2 turns/,
    ],
    ['agent_cost_exceeded', { max_cost_usd: 2 }, /limit of 2 US dollars \(agent\.max_cost_usd\); it used 2 in 2 turns/],
  ])('%s', async (code, limits, message) => {
    const { received, env } = await scriptedModel(looking(), looking(), answering({ done: 1 }));
    const { tool, looked } = lookTool();
    const { outcome } = runAgent({ ...env, ...prices }, [tool], { kept: keepCheckpoints({ limits }) });
    const failure = await failureOf(outcome);
    expect(failure).toMatchObject({ code, permanent: true });
    expect(failure.message).toMatch(message);
    // A tool whose output nobody would read is not run either.
    expect({ received: received.length, looked }).toEqual({ received: 2, looked: [1] });
  });

  test.each([{ max_turns: 2 }, { max_tokens: 2_201 }, { max_cost_usd: 2.01 }])(
    'an answer within them counts: %j',
    async (limits) => {
      const { env } = await scriptedModel(looking(), answering({ done: 1 }));
      const kept = keepCheckpoints({ limits });
      expect(await runAgent({ ...env, ...prices }, [lookTool().tool], { kept }).outcome).toEqual({ done: 1 });
    },
  );

  test('the limits count what earlier attempts of the stage run used', async () => {
    const model = await scriptedModel(looking(), { status: 500 }, looking(), answering({ done: 1 }));
    const { tool } = lookTool();
    const first = runAgent(model.env, [tool], { kept: keepCheckpoints({ limits: { max_turns: 2 } }) });
    expect(await failureOf(first.outcome)).toMatchObject({ code: 'server_error', permanent: false });
    const kept = keepCheckpoints({ turns: first.kept.turns, limits: { max_turns: 2 } });
    expect(await failureOf(runAgent(model.env, [tool], { kept }).outcome)).toMatchObject({
      code: 'agent_turns_exceeded',
    });
  });

  test('agent_time_exceeded, before anything is begun', async () => {
    const { received, env } = await scriptedModel(looking(), answering({ done: 1 }));
    const { tool, looked } = lookTool();
    const first = runAgent(env, [tool], { context: { timeoutMs: 0 } });
    expect(await first.outcome).toBeInstanceOf(HandedBack);
    const kept = keepCheckpoints({ turns: first.kept.turns, limits: { max_seconds: 60 }, elapsedMs: 60_000 });
    const failure = await failureOf(runAgent(env, [tool], { kept }).outcome);
    expect(failure).toMatchObject({ code: 'agent_time_exceeded', permanent: true });
    expect(failure.message).toMatch(/limit of 60 seconds \(agent\.max_seconds\).*raise agent\.max_seconds/);
    expect({ received: received.length, looked }).toEqual({ received: 1, looked: [] });
  });

  test('agent_time_exceeded, while the model or a tool that does not listen is at work', async () => {
    const limits = { max_seconds: 60 };
    const silent = await scriptedModel();
    const waiting = keepCheckpoints({ limits, elapsedMs: 59_900 });
    const code = { code: 'agent_time_exceeded', permanent: true };
    expect(await failureOf(runAgent(silent.env, [], { kept: waiting }).outcome)).toMatchObject(code);
    const { env } = await scriptedModel(looking());
    const { tool } = lookTool(() => new Promise(() => {}));
    const kept = keepCheckpoints({ limits, elapsedMs: 59_800 });
    expect(await failureOf(runAgent(env, [tool], { kept }).outcome)).toMatchObject(code);
    expect(kept.turns).toHaveLength(1);
  });

  test('a limit of cost without prices is a setting to correct, found before it costs anything', async () => {
    const { received, env } = await scriptedModel(answering({ done: 1 }));
    const kept = keepCheckpoints({ limits: { max_cost_usd: 1 } });
    const failure = await failureOf(runAgent(env, [], { kept }).outcome);
    expect(failure).toMatchObject({ code: 'misconfigured', permanent: false });
    expect(failure.message).toContain('LLM_PRICE_INPUT');
    expect(received).toHaveLength(0);
  });

  test('a limit of cost ends after one turn of a model whose price is unknown', async () => {
    const { env } = await scriptedModel({ json: { ...(looking().json as object), model: 'unpriced' } }, looking());
    const kept = keepCheckpoints({ limits: { max_cost_usd: 1 } });
    const priced = { ...env, LLM_MODEL: 'gpt-6-luna' };
    const failure = await failureOf(runAgent(priced, [lookTool().tool], { kept }).outcome);
    expect(failure).toMatchObject({ code: 'agent_usage_unknown', permanent: true });
    expect(failure.message).toContain('the price of unpriced, which has answered, is unknown');
    expect(kept.turns).toHaveLength(1);
  });

  test('the tokens of all turns that the cache held are added up', async () => {
    const usage = {
      input_tokens: 9,
      output_tokens: 1,
      input_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
    };
    const { env } = await scriptedModel(
      { json: { ...(looking().json as object), usage } },
      { json: { ...(answering({ done: 1 }).json as object), usage } },
    );
    const { outcome, usages } = runAgent(env, [lookTool().tool]);
    await outcome;
    expect(usages.at(-1)).toMatchObject({ input_tokens: 18, cached_input_tokens: 8, cache_write_tokens: 4 });
  });

  test('a limit of tokens with a model that reports none ends it after one turn', async () => {
    const { env } = await scriptedModel({ json: { ...(looking().json as object), usage: undefined } }, looking());
    const kept = keepCheckpoints({ limits: { max_tokens: 1_000 } });
    expect(await failureOf(runAgent(env, [lookTool().tool], { kept }).outcome)).toMatchObject({
      code: 'agent_usage_unknown',
      permanent: true,
    });
    expect(kept.turns).toHaveLength(1);
  });
});

describe('being stopped', () => {
  test('once half of the timeout is used the attempt is handed back after the turn, and goes on later', async () => {
    const model = await scriptedModel(calling(['look', { page: 1 }]), answering({ done: 1 }));
    const { tool, looked } = lookTool();
    const context = { timeoutMs: 0 };
    const first = runAgent(model.env, [tool], { context });
    expect(await first.outcome).toBeInstanceOf(HandedBack);
    expect(first.kept.turns).toHaveLength(1);
    expect(await runAgent(model.env, [tool], { context, kept: first.kept }).outcome).toBeInstanceOf(HandedBack);
    expect(looked).toEqual([1]);
    expect(await runAgent(model.env, [tool], { context, kept: first.kept }).outcome).toEqual({ done: 1 });
    expect(model.received).toHaveLength(2);
  });

  test('an aborted signal ends the model’s call and any tool, and nothing of them is recorded', async () => {
    const controller = new AbortController();
    const { env, received } = await scriptedModel(calling(['look', { page: 1 }]));
    let seen: ToolContext | undefined;
    const tool = defineTool({
      name: 'look',
      description: 'Looks at a page',
      parameters: z.object({ page: z.number() }),
      run(_, context) {
        seen = context;
        controller.abort(new Error('stopped'));
        throw new Error('gave up');
      },
    });
    const { outcome, kept } = runAgent(env, [tool], { context: { signal: controller.signal } });
    await expect(outcome).rejects.toThrow('gave up');
    expect(seen?.signal.aborted).toBe(true);
    expect(kept.turns).toHaveLength(1);
    const again = runAgent(env, [tool], { kept, context: { signal: controller.signal } });
    await expect(again.outcome).rejects.toThrow('stopped');
    expect(received).toHaveLength(1);
  });

  test('the output of a tool is recorded even if the agent was stopped meanwhile', async () => {
    const controller = new AbortController();
    const { env } = await scriptedModel(calling(['look', { page: 1 }], ['look', { page: 2 }]));
    const kept = keepCheckpoints({
      before: (turn) => turn.kind === 'tool' && controller.abort(new Error('stopped')),
    });
    const { tool, looked } = lookTool();
    const { outcome } = runAgent(env, [tool], { kept, context: { signal: controller.signal } });
    await expect(outcome).rejects.toThrow('stopped');
    expect(kept.turns.map((turn) => turn.kind)).toEqual(['model', 'tool']);
    expect(looked).toEqual([1]);
  });

  test('an attempt that was taken away goes no further', async () => {
    const { env } = await scriptedModel(calling(['look', { page: 1 }], ['look', { page: 2 }]));
    const kept = keepCheckpoints({
      before: (turn) => {
        if (turn.kind === 'tool') throw new LeaseLost('the attempt was cancelled');
      },
    });
    const { tool, looked } = lookTool();
    await expect(runAgent(env, [tool], { kept }).outcome).rejects.toThrow(LeaseLost);
    expect(looked).toEqual([1]);
  });
});
