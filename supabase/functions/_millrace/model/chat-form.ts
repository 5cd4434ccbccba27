import type {
  ChatCompletionCreateParamsNonStreaming as ChatAsked,
  ChatCompletion,
  ChatCompletionMessageParam as ChatMessage,
} from 'openai/resources/chat/completions';
import type {
  ResponseCreateParamsNonStreaming as Asked,
  FunctionTool,
  Response as ModelResponse,
} from 'openai/resources/responses/responses';
import { answerOf, type Said, saidOf } from './conversation-form.ts';

/**
 * A question as chat completions take it. `metadata` and `store` stay out: many servers refuse fields that they do not know.
 *
 * @internal
 */
export function toChat(asked: Asked): ChatAsked {
  const format = asked.text?.format;
  const tools = (asked.tools ?? []) as FunctionTool[];
  const system: ChatMessage[] = asked.instructions ? [{ role: 'system', content: asked.instructions }] : [];
  return {
    model: String(asked.model),
    messages: [...system, ...saidOf(asked).flatMap(chatMessages)],
    ...(format?.type === 'json_schema' && {
      response_format: {
        type: 'json_schema',
        json_schema: { name: format.name, strict: true, schema: format.schema },
      },
    }),
    ...(tools.length > 0 && { tools: tools.map(chatTool) }),
    ...(asked.max_output_tokens != null && { max_completion_tokens: asked.max_output_tokens }),
  };
}

/**
 * A chat completion as a response of the Responses API.
 *
 * @internal
 */
export function fromChat({ id, model, choices, usage }: ChatCompletion): ModelResponse {
  const [choice] = choices;
  const { content, refusal, tool_calls: called } = choice?.message ?? {};
  const cut = { length: 'max_output_tokens', content_filter: 'content_filter' }[choice?.finish_reason as string];
  return answerOf({
    id,
    model,
    text: textOf(content),
    refusal: refusal ?? null,
    calls: (called ?? []).flatMap((call) =>
      // Some servers leave the type out.
      call && 'function' in call ? [{ id: call.id, name: call.function.name, arguments: call.function.arguments }] : [],
    ),
    cut: cut ?? null,
    usage: {
      input_tokens: usage?.prompt_tokens,
      output_tokens: usage?.completion_tokens,
      input_tokens_details: usage?.prompt_tokens_details,
    },
  });
}

/** Returns the text of a message. Some servers send a list of parts, those of their reasoning among them. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  const parts = Array.isArray(content) ? (content as ({ type?: unknown; text?: unknown } | null)[]) : [];
  return parts.map((part) => (part?.type === 'text' && typeof part.text === 'string' ? part.text : '')).join('');
}

function chatMessages(said: Said): ChatMessage[] {
  if (said.role === 'user') {
    const results = said.results.map(({ id, output }) => ({
      role: 'tool' as const,
      tool_call_id: id,
      content: output,
    }));
    return [...results, ...(said.text ? [{ role: 'user' as const, content: said.text }] : [])];
  }
  const calls = said.calls.map(({ id, ...called }) => ({ id, type: 'function' as const, function: called }));
  return [{ role: 'assistant', content: said.text || null, ...(calls.length > 0 && { tool_calls: calls }) }];
}

function chatTool({ name, description, parameters }: FunctionTool) {
  return {
    type: 'function' as const,
    function: { name, strict: true, parameters: parameters ?? {}, ...(description && { description }) },
  };
}
