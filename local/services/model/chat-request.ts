import { z } from 'zod';
import type { Task } from './answer.ts';
import { checkStrict } from './answer-schema.ts';
import { ApiError } from './api-error.ts';
import { emptyConversation, say } from './conversation.ts';
import type { JsonSchema } from './json-schema.ts';
import { commonFields, functionFields, readBody, readToolChoice, schemaObject, toTool } from './read-request.ts';

const content = z.union([z.string(), z.array(z.object({ type: z.literal('text'), text: z.string() }))], {
  error: 'send text',
});
const toolCall = z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) });
const message = z.discriminatedUnion('role', [
  z.object({ role: z.enum(['system', 'developer', 'user']), content }),
  z.object({ role: z.literal('assistant'), content: content.nullish(), tool_calls: z.array(toolCall).nullish() }),
  z.object({ role: z.literal('tool'), tool_call_id: z.string(), content }),
]);
const responseFormat = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({
    type: z.literal('json_schema'),
    json_schema: z.object({ name: z.string(), schema: schemaObject, strict: z.boolean().nullish() }),
  }),
]);
const request = z.object({
  ...commonFields,
  messages: z.array(message).min(1),
  response_format: responseFormat.nullish(),
  tools: z.array(z.object({ type: z.literal('function'), function: z.object(functionFields) })).nullish(),
  tool_choice: z
    .union([
      z.enum(['none', 'auto', 'required']),
      z.object({ type: z.literal('function'), function: z.object({ name: z.string() }) }),
    ])
    .nullish(),
});

/** The body of `POST /v1/chat/completions`, checked. */
export type ChatRequest = z.infer<typeof request>;

/** Checks the body of `POST /v1/chat/completions` and says what it asks for. Throws ApiError 400. */
export function readChatRequest(body: unknown): { read: ChatRequest; task: Task } {
  const read = readBody(request, body);
  const format = read.response_format;
  const param = 'response_format.json_schema.schema';
  if (format?.type === 'json_schema' && format.json_schema.strict) checkStrict(format.json_schema.schema, param);
  const tools = (read.tools ?? []).map((tool, index) => toTool(tool.function, `tools[${index}].function.parameters`));
  const choice = typeof read.tool_choice === 'object' ? read.tool_choice?.function : read.tool_choice;
  const task: Task = {
    conversation: toConversation(read.messages),
    schema: format?.type === 'json_schema' ? { schema: format.json_schema.schema as JsonSchema, param } : undefined,
    tools,
    toolChoice: readToolChoice(choice, tools),
  };
  return { read, task };
}

function toConversation(messages: ChatRequest['messages']): Task['conversation'] {
  const conversation = emptyConversation();
  for (const item of messages) {
    if (item.role !== 'tool') {
      if (item.content) say(conversation, item.role, textOf(item.content));
      if (item.role !== 'assistant') continue;
      for (const { id, function: called } of item.tool_calls ?? []) conversation.calls.push({ id, ...called });
      continue;
    }
    const call = conversation.calls.find(({ id }) => id === item.tool_call_id);
    if (!call) throw new ApiError(400, `No tool call has the id "${item.tool_call_id}".`, 'messages');
    call.output = textOf(item.content);
  }
  return conversation;
}

function textOf(text: z.infer<typeof content>): string {
  return typeof text === 'string' ? text : text.map((part) => part.text).join('\n');
}
