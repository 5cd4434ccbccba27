import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { keepCheckpoints } from '../../packages/test/kept-turns.ts';
import { recordTurns } from '../../supabase/functions/_millrace/agents/record-turns.ts';
import { MisconfiguredError } from '../../supabase/functions/_millrace/errors.ts';
import { makeContext } from '../support/context.ts';
import { startServer } from '../support/http-server.ts';

const usage = { prompt_tokens: 1_000, completion_tokens: 0, total_tokens: 1_000 };
const prices = { date: '2026-11-01', models: { 'a-model': { input: 1, output: 1 } } };

/** A model that calls `look` for these pages in its first answer, and then says what the outputs were. */
async function startLooker(...pages: number[]) {
  return await startServer(({ body }) => {
    const outputs = JSON.parse(body).messages.filter(({ role }: { role: string }) => role === 'tool');
    const call = (page: number) => ({
      ...{ id: `call_${page}`, type: 'function' },
      function: { name: 'look', arguments: JSON.stringify({ page }) },
    });
    const said = outputs.map(({ content }: { content: string }) => content).join(' ');
    const message = outputs.length > 0 ? { content: said } : { content: null, tool_calls: pages.map(call) };
    const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }];
    return { json: { id: 'c', object: 'chat.completion', created: 1, model: 'a-model', choices, usage } };
  });
}

/** Asks an agent of the AI SDK once, as one try of an attempt does. */
async function ask(
  url: string,
  look: (page: number) => unknown,
  { checkpoints = keepCheckpoints(), prompt = 'Look.' } = {},
) {
  const { context, usages } = makeContext({}, { checkpoints });
  const tools = {
    look: tool({
      description: 'Looks',
      inputSchema: z.object({ page: z.number() }),
      execute: async ({ page }) => look(page),
    }),
  };
  const client = createOpenAICompatible({ name: 'test', baseURL: url })('a-model');
  const recorded = await recordTurns({ model: client, tools, prices }, context);
  const given = await generateText({ ...recorded, prompt, stopWhen: stepCountIs(5), maxRetries: 0 }).then(
    ({ text }) => text,
    (error: unknown) => error,
  );
  return { given, usages, recorded };
}

test('an agent of the AI SDK is asked nothing twice, and a tool runs once, whether it answers or fails', async () => {
  const server = await startLooker(1, 2, 3);
  const checkpoints = keepCheckpoints();
  const looked: number[] = [];
  const look = (page: number) => {
    looked.push(page);
    if (page === 2) throw new TypeError('It is dark\u0000.');
    return page === 3 ? undefined : { seen: new Date(0) };
  };
  const first = await ask(server.url, look, { checkpoints });
  expect(first.given).toBe('{"seen":"1970-01-01T00:00:00.000Z"} It is dark\ufffd. null');
  expect(first.usages.at(-1)).toMatchObject({ model: 'a-model', input_tokens: 2_000, cost_usd: 0.002 });
  const second = await ask(server.url, look, { checkpoints });
  expect(second.given).toBe(first.given);
  expect(server.received).toHaveLength(2);
  expect(looked).toEqual([1, 2, 3]);
  // An attempt that lost its lease still has what it used before.
  expect(second.usages.at(-1)).toEqual(first.usages.at(-1));
});

test('another question is asked anew', async () => {
  const server = await startLooker(1);
  const checkpoints = keepCheckpoints();
  await ask(server.url, () => 'dark', { checkpoints });
  expect((await ask(server.url, () => 'light', { checkpoints, prompt: 'Look again.' })).given).toBe('light');
  expect(server.received).toHaveLength(4);
});

test('an error that no model can mend, a lost lease or a used-up limit ends the attempt', async () => {
  const server = await startLooker(1);
  const misconfigured = new MisconfiguredError('LAMP_URL is not set.');
  const failing = () => {
    throw misconfigured;
  };
  expect((await ask(server.url, failing)).given).toBe(misconfigured);
  const lost = new Error('the lease is lost');
  const checkpoints = keepCheckpoints({
    before: ({ kind }) => {
      if (kind === 'tool') throw lost;
    },
  });
  expect((await ask(server.url, () => 'dark', { checkpoints })).given).toBe(lost);
  expect(server.received).toHaveLength(2);
  const limited = keepCheckpoints({ limits: { max_turns: 1 } });
  expect((await ask(server.url, () => 'dark', { checkpoints: limited })).given).toMatchObject({
    code: 'agent_turns_exceeded',
  });
});

test('an answer that streams is refused with the remedy', async () => {
  const server = await startLooker(1);
  const { recorded } = await ask(server.url, () => 'dark');
  const errors: unknown[] = [];
  const stream = streamText({ ...recorded, prompt: 'Look.', onError: ({ error }) => void errors.push(error) });
  await stream.consumeStream();
  expect(String(errors[0])).toContain('use generateText(), not streamText()');
});
