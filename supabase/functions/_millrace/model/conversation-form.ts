import type {
  ResponseCreateParamsNonStreaming as Asked,
  Response as ModelResponse,
  ResponseOutputItem,
} from 'openai/resources/responses/responses';

/** A tool's call, under the id by which its output names it. */
interface SaidCall {
  id: string;
  name: string;
  arguments: string;
}

/** A turn of one side in any API: texts, and calls of tools or their outputs. */
export type Said =
  | { role: 'user'; text: string; results: { id: string; output: string }[] }
  | { role: 'assistant'; text: string; calls: SaidCall[] };

/**
 * The conversation of a question, by turns of user and assistant. Several items of one side become one turn, since the outputs of
 * all calls of a turn must follow it together.
 *
 * @internal
 */
export function saidOf({ input }: Pick<Asked, 'input'>): Said[] {
  if (typeof input === 'string' || input === undefined) return [{ role: 'user', text: input ?? '', results: [] }];
  const turns: Said[] = [];
  for (const item of input) {
    if (item.type === 'function_call') {
      turnOf(turns, 'assistant').calls.push({ id: item.call_id, name: item.name, arguments: item.arguments });
    } else if (item.type === 'function_call_output') {
      turnOf(turns, 'user').results.push({ id: item.call_id, output: String(item.output) });
    } else if ('role' in item && 'content' in item && typeof item.content === 'string') {
      const turn = turnOf(turns, item.role === 'assistant' ? 'assistant' : 'user');
      turn.text = turn.text ? `${turn.text}\n\n${item.content}` : item.content;
    }
  }
  return turns;
}

/** Returns the last turn if it is of this side, else adds a new turn. */
function turnOf<Role extends Said['role']>(turns: Said[], role: Role): Extract<Said, { role: Role }> {
  const last = turns.at(-1);
  if (last?.role === role) return last as Extract<Said, { role: Role }>;
  const made = role === 'user' ? { role, text: '', results: [] } : { role, text: '', calls: [] };
  turns.push(made as Said);
  return made as unknown as Extract<Said, { role: Role }>;
}

/** An answer in the terms that all APIs have. */
interface GivenAnswer {
  id: string;
  model: string;
  text: string;
  refusal: string | null;
  calls: SaidCall[];
  /** Why the answer ends early: `max_output_tokens` or `content_filter`; null where it is whole. */
  cut: string | null;
  /** Why there is no answer, by a code of the Responses API. */
  failed?: { code: string; message: string } | null;
  usage: unknown;
}

/**
 * An answer of another API as a response of the Responses API, the form that all else reads.
 *
 * @internal
 */
export function answerOf({ id, model, text, refusal, calls, cut, failed, usage }: GivenAnswer): ModelResponse {
  const parts = [
    ...(text ? [{ type: 'output_text', text, annotations: [] }] : []),
    ...(refusal ? [{ type: 'refusal', refusal }] : []),
  ];
  const output = [
    ...(parts.length > 0 ? [{ type: 'message', id, role: 'assistant', status: 'completed', content: parts }] : []),
    ...calls.map(({ id: call_id, ...call }) => ({ type: 'function_call', call_id, ...call })),
  ] as ResponseOutputItem[];
  return {
    id,
    object: 'response',
    status: failed ? 'failed' : cut ? 'incomplete' : 'completed',
    model,
    error: failed ?? null,
    incomplete_details: cut ? { reason: cut } : null,
    output,
    usage,
  } as ModelResponse;
}
