import { z } from 'zod';
import type { Task } from './answer.ts';
import { checkStrict } from './answer-schema.ts';
import { ApiError } from './api-error.ts';
import { type Conversation, emptyConversation, say } from './conversation.ts';
import type { JsonSchema } from './json-schema.ts';
import { commonFields, functionFields, readBody, readToolChoice, schemaObject, toTool } from './read-request.ts';

const content = z.union([
  z.string(),
  z.array(z.object({ type: z.enum(['input_text', 'output_text', 'refusal', 'text']), text: z.string().default('') })),
]);
const message = z.object({
  type: z.literal('message').optional(),
  role: z.enum(['user', 'assistant', 'system', 'developer']),
  content,
});
const functionCall = z.object({
  type: z.literal('function_call'),
  call_id: z.string(),
  name: z.string(),
  arguments: z.string(),
});
const functionOutput = z.object({ type: z.literal('function_call_output'), call_id: z.string(), output: content });
const reasoning = z.object({ type: z.literal('reasoning') });
const inputItem = z.union([message, functionCall, functionOutput, reasoning], {
  error: 'send messages, function calls and their outputs as text',
});
export type InputItem = z.infer<typeof inputItem>;

const textFormat = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_schema'), name: z.string(), schema: schemaObject, strict: z.boolean().nullish() }),
]);
const request = z.object({
  ...commonFields,
  input: z.union([z.string(), z.array(inputItem)], { error: 'send a string or a list of items' }),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
  text: z.object({ format: textFormat.nullish() }).nullish(),
  tools: z
    .array(z.object({ type: z.literal('function', { error: 'only function tools are offered' }), ...functionFields }))
    .nullish(),
  tool_choice: z
    .union([z.enum(['none', 'auto', 'required']), z.object({ type: z.literal('function'), name: z.string() })])
    .nullish(),
  background: z.boolean().nullish(),
  store: z.boolean().nullish(),
  max_output_tokens: z.int().min(16).nullish(),
});

/** The body of `POST /v1/responses`, checked. */
export type ResponsesRequest = z.infer<typeof request>;

/** Checks the body of `POST /v1/responses`. Throws ApiError 400. */
export function readResponsesRequest(body: unknown): ResponsesRequest {
  const read = readBody(request, body);
  if (read.background && read.store === false) {
    throw new ApiError(400, "'background' needs 'store': leave 'store' out or set it to true.", 'store');
  }
  return read;
}

/** Returns the task of a request, with the items of the stored conversation before it. Throws ApiError 400. */
export function toTask(read: ResponsesRequest, before: InputItem[]): Task {
  const format = read.text?.format;
  const param = 'text.format.schema';
  if (format?.type === 'json_schema' && format.strict) checkStrict(format.schema, param);
  const tools = (read.tools ?? []).map((tool, index) => toTool(tool, `tools[${index}].parameters`));
  return {
    conversation: toConversation(read.instructions ?? '', [...before, ...itemsOf(read)]),
    schema: format?.type === 'json_schema' ? { schema: format.schema as JsonSchema, param } : undefined,
    tools,
    toolChoice: readToolChoice(read.tool_choice, tools),
  };
}

/** Returns the request's input as a list of items. */
export function itemsOf(read: ResponsesRequest): InputItem[] {
  return typeof read.input === 'string' ? [{ role: 'user', content: read.input }] : read.input;
}

function toConversation(instructions: string, items: InputItem[]): Conversation {
  const conversation = emptyConversation();
  if (instructions) say(conversation, 'system', instructions);
  for (const item of items) {
    if ('role' in item) say(conversation, item.role, textOf(item.content));
    else if (item.type === 'function_call') {
      conversation.calls.push({ id: item.call_id, name: item.name, arguments: item.arguments });
    } else if (item.type === 'function_call_output') {
      const call = conversation.calls.find(({ id }) => id === item.call_id);
      if (!call)
        throw new ApiError(400, `No tool call found for function call output with call_id ${item.call_id}.`, 'input');
      call.output = textOf(item.output);
    }
  }
  return conversation;
}

function textOf(text: z.infer<typeof content>): string {
  return typeof text === 'string' ? text : text.map((part) => part.text).join('\n');
}
