import OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import type { ResponseFunctionToolCall, ResponseInputItem } from 'openai/resources/responses/responses';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import type { Service } from '../../local/services/http/listen.ts';
import { startModel } from '../../local/services/model/server.ts';

let model: Service;
let client: OpenAI;

beforeAll(async () => {
  model = await startModel({ env: {} });
  client = new OpenAI({ baseURL: model.url, apiKey: 'none', maxRetries: 0 });
});
afterAll(() => model.stop());

function tool(name: string, description: string, keys: string[]) {
  const properties = Object.fromEntries(keys.map((key) => [key, { type: 'string' }]));
  const parameters = { type: 'object', properties, required: keys, additionalProperties: false };
  return { type: 'function' as const, name, description, parameters, strict: true };
}
const tools = [
  tool('get_tide_times', 'The times of high and low tide at a harbour', ['harbour']),
  tool('book_berth', 'Reserves a berth in a harbour for a boat', ['harbour', 'boat']),
];

function callOf(output: OpenAI.Responses.ResponseOutputItem[]): ResponseFunctionToolCall {
  const call = output.find((item) => item.type === 'function_call');
  if (!call) throw new Error('the model called no tool');
  return call;
}

test('the tool that fits the request is called, with arguments from the conversation', async () => {
  const input = 'When is the next high tide at Port Wessel?';
  const call = callOf((await client.responses.create({ model: 'any', input, tools })).output);
  expect(call.name).toBe('get_tide_times');
  expect(JSON.parse(call.arguments)).toEqual({ harbour: 'Port Wessel' });
});

test('once its output answers the request, the model finishes in the form that was asked for', async () => {
  const schema = z.object({ high_tide: z.string().describe('When high tide is') });
  const input: ResponseInputItem[] = [{ role: 'user', content: 'When is the next high tide at Port Wessel?' }];
  const first = await client.responses.create({ model: 'any', input, tools });
  const call = callOf(first.output);
  const output = 'The next high tide at Port Wessel is at 14:20. Low tide is at 20:41.';
  const done = await client.responses.parse({
    model: 'any',
    input: [...input, call, { type: 'function_call_output', call_id: call.call_id, output }],
    tools,
    text: { format: zodTextFormat(schema, 'tide') },
  });
  expect(done.output_parsed).toEqual({ high_tide: 'The next high tide at Port Wessel is at 14:20.' });
});

test('a request of two parts takes two tools, then an end', async () => {
  const input: ResponseInputItem[] = [
    { role: 'user', content: 'Look up the tide times at Port Wessel, then reserve a berth for the boat "Grey Gull".' },
  ];
  const called: string[] = [];
  for (let turn = 0; turn < 5; turn++) {
    const { output, output_text } = await client.responses.create({ model: 'any', input, tools });
    const call = output.find((item) => item.type === 'function_call');
    if (!call) {
      expect(output_text).not.toBe('');
      break;
    }
    called.push(call.name);
    const said = call.name === 'book_berth' ? 'The berth is reserved.' : 'High tide at Port Wessel is at 14:20.';
    input.push(call, { type: 'function_call_output', call_id: call.call_id, output: said });
  }
  expect(called).toEqual(['get_tide_times', 'book_berth']);
});

test('tool_choice is obeyed', async () => {
  const input = 'When is the next high tide at Port Wessel?';
  const forced = await client.responses.create({
    model: 'any',
    input,
    tools,
    tool_choice: { type: 'function', name: 'book_berth' },
  });
  expect(callOf(forced.output).name).toBe('book_berth');
  const none = await client.responses.create({ model: 'any', input, tools, tool_choice: 'none' });
  expect(none.output.map((item) => item.type)).toEqual(['message']);
  const required = await client.responses.create({ model: 'any', input: 'Thanks!', tools, tool_choice: 'required' });
  expect(required.output.map((item) => item.type)).toEqual(['function_call']);
});

test('chat completions call tools and take their outputs too', async () => {
  const chatTools = tools.map(({ type, ...rest }) => ({ type, function: rest }));
  const user = { role: 'user' as const, content: 'When is the next high tide at Port Wessel?' };
  const first = await client.chat.completions.create({ model: 'any', messages: [user], tools: chatTools });
  const message = first.choices[0]?.message;
  const call = message?.tool_calls?.[0];
  expect(first.choices[0]?.finish_reason).toBe('tool_calls');
  expect(call).toMatchObject({ type: 'function', function: { name: 'get_tide_times' } });
  const done = await client.chat.completions.create({
    model: 'any',
    messages: [
      user,
      { role: 'assistant', content: null, tool_calls: message?.tool_calls ?? [] },
      { role: 'tool', tool_call_id: call?.id ?? '', content: 'The next high tide at Port Wessel is at 14:20.' },
    ],
    tools: chatTools,
  });
  expect(done.choices[0]?.message.content).toContain('14:20');
});
