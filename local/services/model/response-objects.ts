import { randomBytes } from 'node:crypto';
import type { ChatCompletion } from 'openai/resources/chat/completions';
import type { Response, ResponseOutputItem } from 'openai/resources/responses/responses';
import type { Answer } from './answer.ts';
import { countTokens } from './conversation.ts';
import type { ResponsesRequest } from './responses-request.ts';

/** Returns an id as OpenAI makes them, such as "resp_…". */
export function newId(prefix: string): string {
  return `${prefix}_${randomBytes(16).toString('hex')}`;
}

/** Returns a response that has been accepted and not yet worked on. */
export function queuedResponse(read: ResponsesRequest): Response {
  return {
    id: newId('resp'),
    object: 'response',
    created_at: nowSeconds(),
    status: 'queued',
    background: read.background ?? false,
    error: null,
    incomplete_details: null,
    instructions: read.instructions ?? null,
    max_output_tokens: read.max_output_tokens ?? null,
    metadata: read.metadata ?? {},
    model: read.model,
    output: [],
    output_text: '',
    parallel_tool_calls: true,
    previous_response_id: read.previous_response_id ?? null,
    temperature: 1,
    text: (read.text ?? { format: { type: 'text' } }) as NonNullable<Response['text']>,
    tool_choice: read.tool_choice ?? 'auto',
    tools: (read.tools ?? []) as Response['tools'],
    top_p: 1,
    truncation: 'disabled',
  };
}

/** Returns the response with its answer: completed, or incomplete where the answer is longer than the request allows. */
export function answeredResponse(response: Response, answer: Answer, prompt: string): Response {
  const said = answer.kind === 'text' ? answer.text : answer.arguments;
  const most = response.max_output_tokens ?? Infinity;
  const isCut = countTokens(said) > most;
  const output = outputItem(isCut ? { kind: 'text', text: said.slice(0, most * 4) } : answer, isCut);
  return {
    ...response,
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    completed_at: nowSeconds(),
    output: [output],
    usage: {
      ...usage(prompt, said, most),
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens_details: { reasoning_tokens: 0 },
    },
  };
}

/** Returns the answer as a chat completion. */
export function chatCompletion(model: string, answer: Answer, prompt: string): ChatCompletion {
  const isCall = answer.kind === 'call';
  const { input_tokens, output_tokens, total_tokens } = usage(
    prompt,
    isCall ? answer.arguments : answer.text,
    Infinity,
  );
  const called = isCall
    ? [{ id: newId('call'), type: 'function' as const, function: { name: answer.name, arguments: answer.arguments } }]
    : undefined;
  return {
    id: newId('chatcmpl'),
    object: 'chat.completion',
    created: nowSeconds(),
    model,
    choices: [
      {
        index: 0,
        finish_reason: isCall ? 'tool_calls' : 'stop',
        logprobs: null,
        message: {
          role: 'assistant',
          content: isCall ? null : answer.text,
          refusal: null,
          ...(called ? { tool_calls: called } : {}),
        },
      },
    ],
    usage: { prompt_tokens: input_tokens, completion_tokens: output_tokens, total_tokens },
  };
}

function outputItem(answer: Answer, isCut: boolean): ResponseOutputItem {
  const status = isCut ? 'incomplete' : 'completed';
  if (answer.kind === 'call') {
    const { name, arguments: filled } = answer;
    return { id: newId('fc'), type: 'function_call', status, call_id: newId('call'), name, arguments: filled };
  }
  const content = [{ type: 'output_text' as const, text: answer.text, annotations: [], logprobs: [] }];
  return { id: newId('msg'), type: 'message', role: 'assistant', status, content };
}

function usage(prompt: string, said: string, most: number) {
  const [input_tokens, output_tokens] = [countTokens(prompt), Math.min(countTokens(said), most)];
  return { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens };
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
