import { z } from 'zod';
import type { Answer, Task } from './answer.ts';
import { ApiError } from './api-error.ts';
import { countTokens, emptyConversation, say, wholeText } from './conversation.ts';
import type { JsonSchema } from './json-schema.ts';
import { checkMessagesSchema } from './messages-schema.ts';
import { readBody, schemaObject } from './read-request.ts';
import { newId } from './response-objects.ts';

const cacheControl = z.object({ type: z.literal('ephemeral'), ttl: z.enum(['5m', '1h']).optional() }).nullish();
const text = z.object({ type: z.literal('text'), text: z.string().min(1), cache_control: cacheControl });
const userBlock = z.discriminatedUnion('type', [
  text,
  z.object({ type: z.literal('tool_result'), tool_use_id: z.string(), content: z.string() }),
]);
const assistantBlock = z.discriminatedUnion('type', [
  text,
  z.object({ type: z.literal('tool_use'), id: z.string(), name: z.string(), input: schemaObject }),
]);
const message = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('user'), content: z.union([z.string().min(1), z.array(userBlock).min(1)]) }),
  z.strictObject({
    role: z.literal('assistant'),
    content: z.union([z.string().min(1), z.array(assistantBlock).min(1)]),
  }),
]);
const tool = z.strictObject({
  name: z.string().regex(/^[\w-]{1,128}$/),
  description: z.string().optional(),
  input_schema: schemaObject,
  strict: z.boolean().optional(),
});
/** The API refuses every field that it does not know, as this does. */
const request = z.strictObject({
  model: z.string().min(1),
  max_tokens: z.int().min(1),
  system: z.union([z.string(), z.array(text)]).optional(),
  messages: z.array(message).min(1),
  cache_control: cacheControl,
  output_config: z
    .strictObject({ format: z.strictObject({ type: z.literal('json_schema'), schema: schemaObject }) })
    .optional(),
  tools: z.array(tool).optional(),
  metadata: z.strictObject({ user_id: z.string().nullish() }).optional(),
});
export type MessagesRequest = z.infer<typeof request>;

/** Checks the body of `POST /v1/messages` and says what it asks for. Throws ApiError 400. */
export function readMessagesRequest(body: unknown): { read: MessagesRequest; task: Task } {
  const read = readBody(request, body);
  const schema = read.output_config?.format.schema;
  if (schema) checkMessagesSchema(schema, 'output_config.format.schema');
  for (const { input_schema: given, strict } of read.tools ?? []) if (strict) checkMessagesSchema(given, 'tools');
  const task: Task = {
    conversation: conversationOf(read),
    schema: schema && { schema: schema as JsonSchema, param: 'output_config.format.schema' },
    tools: (read.tools ?? []).map(({ name, description = '', input_schema: given }, index) => ({
      ...{ name, description, parameters: given as JsonSchema },
      param: `tools[${index}].input_schema`,
    })),
    toolChoice: { mode: 'auto' },
  };
  return { read, task };
}

/** The tokens that a prompt's cached beginning has, and whether they were in the cache already. */
export interface CachedTokens {
  tokens: number;
  isRead: boolean;
}

/** Returns the answer as a message. */
export function messageOf(read: MessagesRequest, task: Task, answer: Answer, cached: CachedTokens): object {
  const said = answer.kind === 'text' ? answer.text : answer.arguments;
  const isCut = countTokens(said) > read.max_tokens;
  const block =
    answer.kind === 'call' && !isCut
      ? { type: 'tool_use', id: newId('toolu'), name: answer.name, input: JSON.parse(answer.arguments) }
      : { type: 'text', text: isCut ? said.slice(0, read.max_tokens * 4) : said, citations: null };
  return {
    id: newId('msg'),
    type: 'message',
    role: 'assistant',
    model: read.model,
    content: [block],
    stop_reason: isCut ? 'max_tokens' : answer.kind === 'call' ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage: {
      input_tokens: Math.max(0, countTokens(wholeText(task.conversation)) - cached.tokens),
      cache_creation_input_tokens: cached.isRead ? 0 : cached.tokens,
      cache_read_input_tokens: cached.isRead ? cached.tokens : 0,
      output_tokens: Math.min(countTokens(said), read.max_tokens),
    },
  };
}

function conversationOf({ system, messages }: MessagesRequest): Task['conversation'] {
  const conversation = emptyConversation();
  const instructions = typeof system === 'string' ? system : (system ?? []).map((part) => part.text).join('\n');
  if (instructions) say(conversation, 'system', instructions);
  for (const { role, content } of messages) {
    const blocks = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content;
    checkResults(conversation, role, blocks);
    for (const block of blocks) {
      if (block.type === 'text') say(conversation, role, block.text);
      else if (block.type === 'tool_use') {
        const { id, name, input } = block;
        conversation.calls.push({ id, name, arguments: JSON.stringify(input) });
      } else {
        const call = conversation.calls.find(({ id }) => id === block.tool_use_id);
        if (call) call.output = block.content;
      }
    }
  }
  return conversation;
}

/** Refuses a message that does not begin with the outputs of all open calls, as the API does. */
function checkResults(conversation: Task['conversation'], role: string, blocks: { type: string }[]): void {
  const open = conversation.calls.filter(({ output }) => output === undefined).map(({ id }) => id);
  const first = blocks.findIndex(({ type }) => type !== 'tool_result');
  const given = (first < 0 ? blocks : blocks.slice(0, first)) as { tool_use_id?: string }[];
  const ids = given.map(({ tool_use_id: id }) => id);
  const missing = role === 'user' ? open.filter((id) => !ids.includes(id)) : [];
  const message = 'tool_use ids were found without tool_result blocks immediately after';
  if (missing.length > 0) throw new ApiError(400, `messages: ${message}: ${missing.join(', ')}`, 'messages');
  const strange = ids.find((id) => !open.includes(id ?? ''));
  if (strange) throw new ApiError(400, `messages: unexpected tool_use_id found in tool_result blocks: ${strange}`);
}
