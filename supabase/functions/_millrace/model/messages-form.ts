import type {
  ResponseCreateParamsNonStreaming as Asked,
  FunctionTool,
  Response as ModelResponse,
} from 'openai/resources/responses/responses';
import { z } from 'zod';
import { parseJson } from '../parse-json.ts';
import { answerOf, type Said, saidOf } from './conversation-form.ts';

/** The API wants a bound of tokens, reasoning among them; all models of today may write four times this one. */
const usualMaxTokens = 16_000;
const ephemeral = { type: 'ephemeral' as const };

/**
 * A question as Anthropic's Messages API takes it. The provider is asked to cache the tools and instructions, which many rows
 * share. Of a conversation it is asked to cache all that was said, since the next turn repeats it.
 *
 * @param retryCount Without a bound of its own, a question that is asked again may be answered by twice, then four times as much.
 * @internal
 */
export function toMessages(asked: Asked, retryCount = 0) {
  const format = asked.text?.format;
  const tools = (asked.tools ?? []) as FunctionTool[];
  return {
    model: asked.model,
    max_tokens: asked.max_output_tokens ?? usualMaxTokens * 2 ** Math.min(retryCount, 2),
    ...(asked.instructions && {
      system: [{ type: 'text', text: asked.instructions, cache_control: ephemeral }],
    }),
    ...(typeof asked.input !== 'string' && { cache_control: ephemeral }),
    messages: saidOf(asked).map(toMessage),
    ...(format?.type === 'json_schema' && {
      output_config: { format: { type: 'json_schema', schema: toMessagesSchema(format.schema) } },
    }),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({
        ...{ name, description, strict: true },
        input_schema: toMessagesSchema(parameters ?? { type: 'object' }),
      })),
    }),
  };
}

const tokens = z.number().nullish().catch(null);
const block = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  id: z.string().optional(),
  name: z.string().optional(),
  input: z.unknown().optional(),
});
/** An answer of the Messages API, as far as it is read. */
const message = z.object({
  id: z.string(),
  type: z.literal('message'),
  model: z.string(),
  content: z.array(block),
  stop_reason: z.string().nullish(),
  usage: z
    .object({
      input_tokens: tokens,
      output_tokens: tokens,
      cache_read_input_tokens: tokens,
      cache_creation_input_tokens: tokens,
    })
    .nullish()
    .catch(null),
});

/**
 * An answer of the Messages API as a response of the Responses API; null for a body that is none. Its input tokens are those that
 * were read anew, from the cache and into it.
 *
 * @internal
 */
export function fromMessages(body: unknown): ModelResponse | null {
  const parsed = message.safeParse(body);
  if (!parsed.success) return null;
  const { id, model, content, stop_reason: stop, usage } = parsed.data;
  const [read, written] = [usage?.cache_read_input_tokens ?? 0, usage?.cache_creation_input_tokens ?? 0];
  return answerOf({
    id,
    model,
    text: content.map(({ type, text }) => (type === 'text' ? (text ?? '') : '')).join(''),
    refusal: stop === 'refusal' ? 'no reason given' : null,
    calls: content.flatMap((part) =>
      part.type === 'tool_use'
        ? [{ id: part.id ?? '', name: part.name ?? '', arguments: JSON.stringify(part.input ?? {}) }]
        : [],
    ),
    cut: stop === 'max_tokens' ? 'max_output_tokens' : null,
    failed:
      stop === 'model_context_window_exceeded'
        ? { code: 'context_length_exceeded', message: 'The answer reached the end of the context window.' }
        : null,
    usage: {
      input_tokens: usage?.input_tokens == null ? undefined : usage.input_tokens + read + written,
      output_tokens: usage?.output_tokens,
      input_tokens_details: { cached_tokens: read, cache_write_tokens: written },
    },
  });
}

function toMessage(said: Said) {
  const text = said.text ? [{ type: 'text', text: said.text }] : [];
  if (said.role === 'assistant') {
    const calls = said.calls.map((call) => {
      const input = parseJson(call.arguments);
      return { type: 'tool_use', id: call.id, name: call.name, input: typeof input === 'object' && input ? input : {} };
    });
    return { role: said.role, content: [...text, ...calls] };
  }
  // A tool's outputs come before all text, or the API refuses them.
  const results = said.results.map(({ id, output }) => ({ type: 'tool_result', tool_use_id: id, content: output }));
  return { role: said.role, content: [...results, ...text] };
}

const knownWords = ['type', 'enum', 'const', '$ref', 'required', 'additionalProperties', 'title', 'format'];

/**
 * A strict JSON schema as Anthropic takes it. Bounds of length, number and pattern are refused there: they go into the description,
 * as its own SDK has it, and zod checks them once the answer is there.
 */
function toMessagesSchema(schema: Record<string, unknown>): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  const told: string[] = [];
  for (const [word, value] of Object.entries(schema)) {
    if (knownWords.includes(word) || (word === 'minItems' && Number(value) <= 1)) made[word] = value;
    else if (word === 'properties' || word === '$defs') made[word] = eachPart(value as object);
    else if (word === 'anyOf') made[word] = (value as Record<string, unknown>[]).map(toMessagesSchema);
    else if (word === 'items') made[word] = toMessagesSchema(value as Record<string, unknown>);
    else if (word !== 'description') told.push(`${word}: ${JSON.stringify(value)}`);
  }
  const words = [schema.description, told.length > 0 && `{${told.join(', ')}}`].filter(Boolean);
  return words.length > 0 ? { ...made, description: words.join('\n\n') } : made;
}

function eachPart(parts: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, toMessagesSchema(part)]));
}
