import type { ResponseInputItem } from 'openai/resources/responses/responses';
import type { z } from 'zod';
import type { ModelTurn, Turn } from '../engine/engine-contract.ts';
import { PermanentError } from '../errors.ts';
import { parseForm } from '../model/answer-form.ts';
import { parseJson } from '../parse-json.ts';
import { describeFault, storageFault } from '../stage/validate-result.ts';

/** A tool's call that the model has made. */
export interface Call {
  call_id: string;
  name: string;
  arguments: string;
}

/** A tool's call that has ended, with the output that the model got. */
export interface Finding {
  name: string;
  arguments: string;
  output: string;
}

/** Returns how an answer contradicts the tools' findings, as a sentence to the model; null where it does not. */
export type AnswerCheck<Answer> = (answer: Answer, findings: readonly Finding[]) => string | null;

/**
 * An answer in the right form. `contradiction`: the sentence that asks the model to correct it; null where it stands.
 */
export interface GivenAnswer<Answer> {
  answer: Answer;
  contradiction: string | null;
}

// The model gets two corrections: the third invalid answer in a row fails, and a third contradiction is accepted.
const MOST_INVALID_ANSWERS = 3;
const MOST_CONTRADICTIONS = 2;

/** Returns the calls of the model's last turn that no output answers yet, in the order in which it made them. */
export function openCalls(turns: readonly Turn[]): Call[] {
  const last = turns.findLast(isSaid);
  if (!last) return [];
  // Not every service gives a call an id that no earlier turn had.
  const since = turns.filter((turn) => turn.seq > last.seq);
  return callsOf(last).filter((call) => !since.some((turn) => turn.kind === 'tool' && turn.call_id === call.call_id));
}

/**
 * Returns the answer of the conversation; undefined while it goes on. An answer that does not fit the schema goes back
 * to the model with its fault. An answer that `check` objects to comes with the contradiction; after two of them it
 * stands. Throws `invalid_output` at the third unfit answer in a row, and `model_refused` where the model declines.
 */
export function finalAnswer<S extends z.ZodObject>(
  turns: readonly Turn[],
  schema: S,
  check?: AnswerCheck<z.output<S>>,
): GivenAnswer<z.output<S>> | undefined {
  const said = turns.filter(isSaid);
  const last = said.at(-1);
  if (!last || callsOf(last).length > 0) return undefined;
  const refusal = partsOf(last).find((part) => part.type === 'refusal');
  if (refusal) throw new PermanentError('model_refused', `The model declined to answer: ${String(refusal.refusal)}`);
  const parsed = read(last, schema);
  if (parsed.success) {
    const before = said.slice(0, -1).filter((turn) => contradictionOf(turn, turns, schema, check) !== null);
    const mayCorrect = before.length < MOST_CONTRADICTIONS;
    return { answer: parsed.data, contradiction: mayCorrect ? contradictionOf(last, turns, schema, check) : null };
  }
  const tries = said.slice(-MOST_INVALID_ANSWERS).filter((turn) => callsOf(turn).length === 0).length;
  if (tries === MOST_INVALID_ANSWERS) throw new PermanentError('invalid_output', `No answer fits: ${parsed.fault}.`);
  return undefined;
}

/**
 * Returns the conversation as the API takes it, always the same for the same turns. Reasoning is left out: it cannot be
 * given back without its ids, which only the service that stored it knows.
 */
export function toInput<S extends z.ZodObject>(
  asked: string,
  turns: readonly Turn[],
  schema: S,
  check?: AnswerCheck<z.output<S>>,
): ResponseInputItem[] {
  const items = turns.flatMap((turn): ResponseInputItem[] => {
    if (turn.kind === 'tool') {
      return [{ type: 'function_call_output', call_id: turn.call_id, output: turn.content.output }];
    }
    if (!isSaid(turn)) return [];
    const calls = callsOf(turn);
    const text = textOf(turn);
    return [
      ...(text ? [{ role: 'assistant' as const, content: text }] : []),
      ...calls.map((call) => ({ type: 'function_call' as const, ...call })),
      ...(calls.length === 0 ? [{ role: 'user' as const, content: correction(turn, turns, schema, check) }] : []),
    ];
  });
  return [{ role: 'user', content: asked }, ...items];
}

function correction<S extends z.ZodObject>(
  turn: ModelTurn & Turn,
  turns: readonly Turn[],
  schema: S,
  check?: AnswerCheck<z.output<S>>,
): string {
  const contradiction = contradictionOf(turn, turns, schema, check);
  if (contradiction)
    return `Your answer contradicts what the tools have found: ${contradiction} Look again and answer again.`;
  const given = read(turn, schema);
  return `Your answer does not fit: ${given.success ? 'it was not taken' : given.fault}. Answer again.`;
}

type Read<Answer> = { success: true; data: Answer } | { success: false; fault: string };

/** Parses the answer of a turn; returns its fault where it does not fit the schema or cannot be stored. */
function read<S extends z.ZodObject>(turn: ModelTurn & Turn, schema: S): Read<z.output<S>> {
  const value = parseJson(textOf(turn));
  const unfit = storageFault(value, 'answer');
  if (unfit) return { success: false, fault: unfit };
  const parsed = parseForm(schema, value);
  return parsed.success ? parsed : { success: false, fault: describeFault(parsed.error, value, 'answer') };
}

/**
 * Returns how this turn's answer contradicts the findings up to this turn; null where it does not, or is no valid
 * answer.
 */
function contradictionOf<S extends z.ZodObject>(
  turn: ModelTurn & Turn,
  turns: readonly Turn[],
  schema: S,
  check?: AnswerCheck<z.output<S>>,
): string | null {
  if (!check || callsOf(turn).length > 0) return null;
  const parsed = read(turn, schema);
  if (!parsed.success) return null;
  const findings = turns.flatMap((other): Finding[] => {
    if (other.kind !== 'tool' || other.seq > turn.seq || other.content.failed) return [];
    const { name, arguments: given, output } = other.content;
    return [{ name, arguments: given, output }];
  });
  return check(parsed.data, findings);
}

function isSaid(turn: Turn): turn is ModelTurn {
  return turn.kind === 'model' && turn.content.discarded === undefined;
}

function callsOf(turn: ModelTurn): Call[] {
  return turn.content.output
    .filter((item) => item.type === 'function_call')
    .map((item) => ({ call_id: String(item.call_id), name: String(item.name), arguments: String(item.arguments) }));
}

function partsOf(turn: ModelTurn): Record<string, unknown>[] {
  return turn.content.output.flatMap((item) =>
    item.type === 'message' && Array.isArray(item.content) ? item.content : [],
  );
}

function textOf(turn: ModelTurn): string {
  return partsOf(turn)
    .map((part) => (part.type === 'output_text' ? String(part.text) : ''))
    .join('');
}
